#include "schedule/rules/nest/transposed.h"

#include "schedule/codes.h"

namespace lathe::schedule {

// The side of the smallest square.
constexpr int64_t least_square = 4;

std::optional<size_t> crossing_loop(const PrimFunc& function, const Work& work, int64_t lanes) {
  if (lanes < least_square || work.loops.size() < 2) return std::nullopt;
  const For& last = *work.loops.back();
  // An extent that is not known may be long; where it is not, all of it is rest.
  const auto is_short = [&](const For& loop) { return as_int(loop.extent).value_or(lanes) < least_square; };
  if (is_short(last)) return std::nullopt;
  const std::vector<Access> all = accesses(function.body);
  for (size_t l = work.loops.size() - 1; l-- > 0;) {
    const For& loop = *work.loops[l];
    if (is_short(loop)) continue;
    bool crosses = false, fits = true;
    for (const Access& access : all) {
      if (access.block != &work.block()) continue;
      // A stride that is not known is one of several rows, whose length the run knows.
      const auto inner = stride_of(access, last);
      fits = fits && (inner || moves_with(access, last)) && (!access.writes || inner == 1);
      if (!fits) break;
      if (inner == 0 || inner == 1) continue;
      crosses = true;
      fits = stride_of(access, loop) == 1;
    }
    if (fits && crosses) return l;
  }
  return std::nullopt;
}

std::optional<size_t> interleaved_loop(const PrimFunc& function, const Work& work) {
  if (work.loops.size() < 2) return std::nullopt;
  const For& last = *work.loops.back();
  const std::vector<Access> all = accesses(function.body);
  for (size_t l = work.loops.size() - 1; l-- > 0;) {
    const For& loop = *work.loops[l];
    const auto rows = as_int(loop.extent);
    if (!rows || *rows < 2 || *rows > largest_near_stride) continue;
    bool are_apart = false, fits = true;
    for (const Access& access : all) {
      if (access.block != &work.block()) continue;
      const auto along = stride_of(access, last);
      fits = fits && along && (!access.writes || *along == 1);
      if (!fits) break;
      if (*along == 0 || *along == 1) continue;
      are_apart = true;
      fits = *along >= *rows && *along <= largest_near_stride && stride_of(access, loop) == 1;
    }
    if (fits && are_apart) return l;
  }
  return std::nullopt;
}

namespace {

// The block in the loop: the one of which `parts` of a cut nest made a copy.
Result<BlockRV> block_in(Schedule& schedule, LoopRV loop) { return TRY(schedule.get_child_blocks(loop)).at(0); }

Result<std::optional<int64_t>> extent_of(Schedule& schedule, LoopRV loop) {
  return as_int(TRY(schedule.get(loop))->extent);
}

// The number, among what the block reads, of a tensor in memory that `across` walks in steps.
Result<std::optional<int64_t>> strided_read(Schedule& schedule, BlockRV block, LoopRV across) {
  const Ref<Block> node = TRY(schedule.get(block));
  const Ref<For> loop = TRY(schedule.get(across));
  const std::vector<Buffer> read = buffers_read(node->body);
  for (const Access& access : accesses(schedule.function().body)) {
    if (access.block != node.get() || access.writes || access.buffer->scope == "register") continue;
    const auto stride = stride_of(access, *loop);
    if (stride && (*stride == 0 || *stride == 1)) continue;
    return std::optional<int64_t>(std::find(read.begin(), read.end(), access.buffer) - read.begin());
  }
  return std::optional<int64_t>();
}

// What a square reads across comes into registers by its rows, which are vectors of memory, and is read there by its
// columns. Refused where it is not one square of memory.
Status through_registers(Schedule& schedule, BlockRV block, LoopRV square, LoopRV across, int64_t lanes) {
  while (const auto number = TRY(strided_read(schedule, block, across))) {
    const BlockRV rows = TRY(schedule.cache_read(block, *number, "register", {block}));
    TRY(schedule.compute_at(rows, square));
    const Id outer = TRY(schedule.get(square))->id;
    std::vector<LoopRV> inside;
    bool is_inside = false;
    for (const LoopRV& loop : TRY(schedule.get_loops(rows))) {
      if (is_inside) inside.push_back(loop);
      is_inside = is_inside || TRY(schedule.get(loop))->id == outer;
    }
    for (const LoopRV& loop : inside)
      if (inside.size() != 2 || TRY(extent_of(schedule, loop)) != lanes)
        return refuse(codes::not_inlinable, name_of(*TRY(schedule.get(rows))) + " reads no square");
    const std::vector<Work> now = works(schedule.function());
    const Work* work = find(now, TRY(schedule.get(rows))->name);
    // Rows that begin where only the run knows may end before they do.
    if (!is_int(work->realize->predicate, 1))
      return refuse(codes::not_inlinable, name_of(work->block()) + " may read less than a square");
    for (const Access& access : accesses(schedule.function().body))
      if (access.block == &work->block() && stride_of(access, *work->loops.back()) != 1)
        return refuse(codes::not_inlinable, name_of(work->block()) + " reads no rows");
    TRY(schedule.unroll(inside[0]));
    TRY(schedule.vectorize(inside[1]));
  }
  return support::success();
}

// So many squares beside one another write whole cache lines, where they divide the columns. Lines that are written in
// parts, with all the rows between, may be gone from the near caches when the second part comes.
int64_t squares_a_line(const Block& block, std::optional<int64_t> columns, int64_t lanes) {
  constexpr int64_t line = 8 * target::cache_line_bytes;
  const auto* store = block.body.as<BufferStore>();
  const int64_t bits = store ? lanes * store->buffer->dtype.storage_bits() : line;
  const int64_t squares = std::max<int64_t>(line / bits, 1);
  return columns && *columns / lanes % squares == 0 ? squares : 1;
}

// Cuts the block's two innermost loops, `across` and in it `down`, into squares of `lanes`, and what is left over into
// smaller ones, as far as its extents are known. Gives the loop over squares across.
Result<LoopRV> cut_into_squares(Schedule& schedule, BlockRV block, LoopRV across, LoopRV down, int64_t lanes) {
  const auto width = TRY(extent_of(schedule, across)), height = TRY(extent_of(schedule, down));
  if (lanes < least_square) return across;
  if ((width && *width < lanes) || (height && *height < lanes))
    return cut_into_squares(schedule, block, across, down, lanes / 2);
  const std::vector<LoopRV> columns = TRY(schedule.peel(across, lanes));
  if (columns.size() > 1 && width) {
    const BlockRV rest = TRY(block_in(schedule, columns[1]));
    TRY(cut_into_squares(schedule, rest, columns[1], TRY(schedule.get_loops(rest)).back(), lanes / 2));
  }
  std::vector<Factor> factors{Factor(), Factor(lanes)};
  const int64_t beside = squares_a_line(*TRY(schedule.get(block)), TRY(extent_of(schedule, columns[0])), lanes);
  if (beside > 1) factors.insert(factors.begin() + 1, Factor(beside));
  const std::vector<LoopRV> cut = TRY(schedule.split(columns[0], factors));
  const LoopRV rows = TRY(schedule.get_loops(block)).back();
  std::vector<LoopRV> inside{rows};
  inside.insert(inside.end(), cut.begin() + 1, cut.end());
  TRY(schedule.reorder(inside));
  const std::vector<LoopRV> parts = TRY(schedule.peel(rows, lanes));
  if (parts.size() > 1 && height) {
    const BlockRV rest = TRY(block_in(schedule, parts[1]));
    const std::vector<LoopRV> all = TRY(schedule.get_loops(rest));
    std::vector<LoopRV> order(all.end() - static_cast<ptrdiff_t>(cut.size() - 1), all.end());
    const LoopRV lane = order.back();
    order.push_back(parts[1]);
    TRY(schedule.reorder(order));
    TRY(cut_into_squares(schedule, rest, lane, parts[1], lanes / 2));
  }
  const std::vector<LoopRV> squares = TRY(schedule.split(parts[0], {Factor(), Factor(lanes)}));
  if (beside > 1) TRY(schedule.reorder({squares[0], cut[1], squares[1]}));
  const LoopRV square = beside > 1 ? cut[1] : squares[0];
  Schedule attempt = schedule;
  if (!is_conditional(*TRY(schedule.get(block))) && through_registers(attempt, block, square, cut.back(), lanes))
    schedule = std::move(attempt);
  TRY(schedule.vectorize(cut.back()));
  TRY(schedule.unroll(squares[1]));
  return cut[0];
}

// Threads share the loops around the block's innermost ones, `outer` of them, or with them the loop over what these
// were cut into where they are few.
Status share_outer(Schedule& schedule, const RuleContext& context, BlockRV block, size_t outer, LoopRV pieces) {
  const std::vector<LoopRV> now = TRY(schedule.get_loops(block));
  std::vector<LoopRV> around(now.begin(), now.begin() + static_cast<ptrdiff_t>(outer));
  int64_t count = 1;
  for (const LoopRV& loop : around) count *= TRY(extent_of(schedule, loop)).value_or(2 * context.target.cores);
  if (count < 2 * context.target.cores) around.push_back(pieces);
  try_parallel(schedule, around);
  return support::success();
}

}  // namespace

Status pull_apart(Schedule& schedule, const RuleContext& context, BlockRV block, size_t rows, int64_t lanes,
                  bool parallel) {
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  const auto length = TRY(extent_of(schedule, loops.back()));
  if (length && *length < lanes) return refuse(codes::loop_kind, "rows are shorter than a vector");
  std::vector<LoopRV> order(loops.begin() + static_cast<ptrdiff_t>(rows) + 1, loops.end());
  order.push_back(loops[rows]);
  TRY(schedule.reorder(order));
  const std::vector<LoopRV> parts = TRY(schedule.peel(loops.back(), lanes));
  if (parts.size() > 1 && length) {
    const LoopRV each = TRY(schedule.get_loops(TRY(block_in(schedule, parts[1])))).back();
    TRY(schedule.reorder({each, parts[1]}));
    TRY(schedule.unroll(each));
    if (*length % lanes > 1) TRY(schedule.vectorize(parts[1]));
  }
  const std::vector<LoopRV> vectors = TRY(schedule.split(parts[0], {Factor(), Factor(lanes)}));
  const LoopRV each = TRY(schedule.get_loops(block)).back();
  TRY(schedule.reorder({each, vectors[1]}));
  TRY(schedule.unroll(each));
  TRY(schedule.vectorize(vectors[1]));
  return parallel ? share_outer(schedule, context, block, loops.size() - 2, vectors[0]) : support::success();
}

Status tile_crossing(Schedule& schedule, const RuleContext& context, BlockRV block, size_t crossing, int64_t lanes,
                     bool parallel) {
  // …, what lies between, columns, rows: so that what is left over of each is a nest of its own.
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  std::vector<LoopRV> order(loops.begin() + static_cast<ptrdiff_t>(crossing) + 1, loops.end());
  order.push_back(loops[crossing]);
  TRY(schedule.reorder(order));
  const LoopRV squares = TRY(cut_into_squares(schedule, block, loops.back(), loops[crossing], lanes));
  return parallel ? share_outer(schedule, context, block, loops.size() - 2, squares) : support::success();
}

}  // namespace lathe::schedule
