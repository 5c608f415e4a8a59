#include "schedule/rules/cut_reduction.h"

#include "ir/visit.h"
#include "schedule/rules/nest/rows.h"
#include "schedule/rules/tile/tile.h"

namespace lathe::schedule {

namespace {

// A piece is read from beginning to end by a few vectors of partial results: some dozens of terms each.
constexpr int64_t longest_piece = 4096, shortest_piece = 256;
// A row of no more terms for each of four vectors' lanes stays whole: what is computed for it can go the same way.
constexpr int64_t longest_chain = 256;

// How many of the innermost loops make nothing but variables of the reduction; 0 where an extent is not known.
size_t reducing_loops(const Work& work) {
  size_t count = 0;
  for (auto loop = work.loops.rbegin(); loop != work.loops.rend(); ++loop, ++count) {
    bool reduces = false;
    for (size_t v = 0; v < work.block().iter_vars.size(); ++v) {
      if (!uses_var(work.realize->iter_values[v], (*loop)->loop_var)) continue;
      if (work.block().iter_vars[v]->type != IterType::reduce) return count;
      reduces = true;
    }
    if (!reduces) return count;
    if (!as_int((*loop)->extent)) return 0;
  }
  return count;
}

// The most of the innermost loops that are one row, made one loop, and how many they were.
Result<std::pair<LoopRV, size_t>> join_row(Schedule& schedule, BlockRV block, const std::vector<LoopRV>& loops) {
  for (size_t count = loops.size(); count > 1; --count) {
    Schedule attempt = schedule;
    const auto joined = attempt.fuse({loops.end() - static_cast<ptrdiff_t>(count), loops.end()});
    if (!joined.ok() || !TRY(walks_a_row(attempt, block, *joined))) continue;
    schedule = std::move(attempt);
    return std::pair(*joined, count);
  }
  return std::pair(loops.back(), size_t(1));
}

// How many of the innermost loops are a piece together, whose elements then are counted without quotients; 0 where they
// are too many or too few elements, or all there are.
size_t loops_of_piece(const Work& work, size_t reducing) {
  int64_t elements = 1;
  size_t count = 0;
  for (; count < reducing; ++count) {
    const int64_t extent = *as_int(work.loops[work.loops.size() - 1 - count]->extent);
    if (elements * extent > longest_piece) break;
    elements *= extent;
  }
  return elements >= shortest_piece && count < reducing ? count : 0;
}

}  // namespace

Result<std::optional<BlockRV>> cut_reduction(Schedule& schedule, BlockRV block, int64_t lanes) {
  const std::optional<BlockRV> none;
  const Ref<Block> node = TRY(schedule.get(block));
  const std::vector<Work> list = works(schedule.function());
  const Work* work = find(list, node->name);
  if (!work || !node->body.is<BufferStore>()) return none;
  const size_t count = reducing_loops(*work);
  if (count == 0) return none;
  const std::vector<LoopRV> all = TRY(schedule.get_loops(block));
  const std::vector<LoopRV> loops(all.end() - static_cast<ptrdiff_t>(count), all.end());
  const Schedule apart = schedule;
  Schedule attempt = schedule;
  const auto [row, joined] = TRY(join_row(attempt, block, loops));
  if (!TRY(walks_a_row(attempt, block, row))) return none;
  const int64_t extent = *as_int(TRY(attempt.get(row))->extent);
  std::vector<LoopRV> outside(loops.begin(), loops.end() - static_cast<ptrdiff_t>(joined));
  if (outside.empty()) {
    schedule = attempt;
    const int64_t piece = largest_divisor(extent, longest_piece);
    const int64_t whole = std::max(2 * longest_piece, longest_chain * 4 * lanes);
    if (extent <= whole) return none;
    if (const size_t inner = loops_of_piece(*work, count)) {
      attempt = apart;
      outside.assign(loops.begin(), loops.end() - static_cast<ptrdiff_t>(inner));
      if (inner > 1) TRY(attempt.fuse({loops.end() - static_cast<ptrdiff_t>(inner), loops.end()}));
    } else if (piece >= shortest_piece) {
      outside = {TRY(attempt.split(row, {Factor(), piece}))[0]};
    } else {
      return none;
    }
  } else if (extent < 2 * lanes) {
    return none;
  }
  const LoopRV part = outside.size() > 1 ? TRY(attempt.fuse(outside)) : outside[0];
  if (as_int(TRY(attempt.get(part))->extent) == 1) return none;
  const BlockRV partial = TRY(attempt.rfactor(part, -1));
  schedule = std::move(attempt);
  return std::optional(partial);
}

}  // namespace lathe::schedule
