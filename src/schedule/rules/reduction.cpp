// reduction: reductions over the last axis, alone or in groups that share their rows (softmax, layer normalisation).
// All blocks run row by row, rows in parallel; a reduction keeps vectors of partial results in registers and combines
// their lanes at the end of the row.
#include "ir/visit.h"
#include "schedule/rules/cut_reduction.h"
#include "schedule/rules/tile.h"

namespace lathe::schedule {

namespace {

// Four vectors of partial results hide the latency of an addition, where the row is long enough to fill them. What the
// row has beyond whole groups comes one by one, slowly and each term rounded as the whole sum is: smaller groups may
// leave less of it.
int64_t chains_for(int64_t extent, int64_t lanes) {
  if (extent < 16 * lanes) return 1;
  int64_t best = 4, least = extent;
  for (const int64_t chains : {4, 2, 1}) {
    const int64_t steps = extent / (chains * lanes) + extent % (chains * lanes);
    if (steps < least) best = chains;
    least = std::min(least, steps);
  }
  return best;
}

// The loop in vectors of so many lanes, written out where they are several.
Status vectors_of(Schedule& schedule, LoopRV loop, int64_t count, int64_t lanes) {
  if (count <= lanes) return schedule.vectorize(loop);
  const std::vector<LoopRV> cut = TRY(schedule.split(loop, {Factor(), lanes}));
  TRY(schedule.unroll(cut[0]));
  return schedule.vectorize(cut[1]);
}

// The innermost loop of an elementwise block in vectors, unless it is one of the `outer` that rows are made of: as many
// at once as a reduction over the same row takes. Gives the loop over these groups.
Result<std::optional<LoopRV>> vectorize_row(Schedule& schedule, const RuleContext& context, BlockRV block,
                                            size_t outer) {
  const std::optional<LoopRV> none;
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  if (loops.size() <= outer) return none;  // one value a row
  const Ref<Block> node = TRY(schedule.get(block));
  const Ref<For> last = TRY(schedule.get(loops.back()));
  const int64_t lanes = context.target.lanes(widest_bits(*node));
  const auto extent = as_int(last->extent);
  if (lanes < 2 || (extent && *extent < lanes)) return none;
  for (const Access& access : accesses(schedule.function().body)) {
    if (access.block != node.get()) continue;
    const auto stride = stride_of(access, *last);
    if (!stride || *stride < 0 || *stride > 1) return none;
  }
  const int64_t width = lanes * (extent ? chains_for(*extent, lanes) : 1);
  const std::vector<LoopRV> parts = TRY(schedule.peel(loops.back(), width));
  const std::vector<LoopRV> groups = TRY(schedule.split(parts[0], {Factor(), width}));
  TRY(vectors_of(schedule, groups[1], width, lanes));
  return std::optional(groups[0]);
}

// The block that starts what `partial` adds to, where that is a block of its own.
Result<std::optional<BlockRV>> start_of(Schedule& schedule, BlockRV partial) {
  const Ref<Block> node = TRY(schedule.get(partial));
  if (node->init) return std::optional<BlockRV>();
  const Buffer sums = node->body.as<BufferStore>()->buffer;
  for (const BlockRV& producer : TRY(schedule.get_producers(partial)))
    if (buffers_written(TRY(schedule.get(producer))->body) == std::vector<Buffer>{sums}) return std::optional(producer);
  return std::optional<BlockRV>();
}

// The partial results of `loop`'s iterations as one vector in registers, over the loops from `over` down; what is left
// of the block combines them. Where `before` is a loop of the same iterations right before, in which what is reduced is
// computed, the two become one. Gives the block of partial results.
Result<BlockRV> lanes_of(Schedule& schedule, LoopRV over, LoopRV loop, int64_t count, int64_t lanes,
                         std::optional<LoopRV> before = {}) {
  const BlockRV partial = TRY(schedule.rfactor(loop, -1));
  TRY(schedule.set_scope(partial, 0, "register"));
  TRY(vectors_of(schedule, loop, count, lanes));
  if (const auto start = TRY(start_of(schedule, partial))) {
    TRY(vectors_of(schedule, TRY(schedule.get_loops(*start)).back(), count, lanes));
    return partial;
  }
  if (before) {
    Schedule attempt = schedule;
    if (const auto both = attempt.merge({*before, over})) {
      schedule = std::move(attempt);
      over = *both;
    }
  }
  TRY(schedule.decompose_reduction(partial, over));
  return partial;
}

// A reduction over a loop of whole groups of `width` elements: partial results of each place in a group, then of each
// lane, then of half as many lanes, to the last. Gives the blocks of partial results.
Result<std::vector<BlockRV>> sum_vectors(Schedule& schedule, BlockRV block, LoopRV loop, int64_t width, int64_t lanes,
                                         std::optional<LoopRV> before) {
  const std::vector<LoopRV> cut = TRY(schedule.split(loop, {Factor(), width}));
  std::vector<BlockRV> parts{TRY(lanes_of(schedule, cut[0], cut[1], width, lanes, before))};
  LoopRV rest = TRY(schedule.get_loops(block)).back();
  if (width > lanes) {
    const std::vector<LoopRV> again = TRY(schedule.split(rest, {Factor(), lanes}));
    parts.push_back(TRY(lanes_of(schedule, again[0], again[1], lanes, lanes)));
    TRY(schedule.unroll(again[0]));
    rest = TRY(schedule.get_loops(block)).back();
  }
  // One after another the lanes would wait for each other as often as there are lanes.
  for (int64_t half = lanes / 2; half > 1; half /= 2) {
    const std::vector<LoopRV> halves = TRY(schedule.split(rest, {Factor(), half}));
    parts.push_back(TRY(lanes_of(schedule, halves[0], halves[1], half, half)));
    TRY(schedule.unroll(halves[0]));
    rest = TRY(schedule.get_loops(block)).back();
  }
  TRY(schedule.unroll(rest));
  return parts;
}

// The loops that variables of this type are made of.
std::vector<const For*> loops_of(const Work& work, IterType type) {
  std::vector<const For*> found;
  for (const For* loop : work.loops) {
    bool uses = false;
    for (size_t v = 0; v < work.block().iter_vars.size(); ++v)
      uses =
          uses || (work.block().iter_vars[v]->type == type && uses_var(work.realize->iter_values[v], loop->loop_var));
    if (uses) found.push_back(loop);
  }
  return found;
}

// One reduction over its innermost loop, in vectors; by the way of the loop `before`, where that computes what it
// reduces. Gives the blocks of partial results.
Result<std::vector<BlockRV>> reduce_row(Schedule& schedule, const RuleContext& context, BlockRV block,
                                        std::optional<LoopRV> before) {
  const std::vector<BlockRV> none;
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  const Ref<Block> node = TRY(schedule.get(block));
  // Axes of one iteration may have lost their loops when the block was brought to its row.
  const std::vector<Work> now = works(schedule.function());
  const size_t reduce_loops = loops_of(*find(now, node->name), IterType::reduce).size();
  if (reduce_loops == 0) return none;
  LoopRV axis = loops.back();
  const Ref<For> last = TRY(schedule.get(axis));
  if (!node->body.is<BufferStore>()) return none;
  for (const Access& access : accesses(schedule.function().body)) {
    if (access.block != node.get()) continue;
    const auto stride = stride_of(access, *last);
    if (!stride || *stride < 0 || *stride > 1) return none;
  }
  if (reduce_loops > 1) {
    // Where the reduced axes lie behind one another they are one row.
    Schedule attempt = schedule;
    const auto fused = attempt.fuse({loops.end() - static_cast<ptrdiff_t>(reduce_loops), loops.end()});
    const auto extent = as_int(last->extent);
    if (fused.ok() && extent && *extent < 4 * context.target.lanes(widest_bits(*node))) {
      bool flat = true;
      const Ref<For> row = TRY(attempt.get(*fused));
      for (const Access& access : accesses(attempt.function().body)) {
        const Ref<Block> same_block = TRY(attempt.get(block));
        if (access.block != same_block.get()) continue;
        const auto stride = stride_of(access, *row);
        flat = flat && stride && *stride >= 0 && *stride <= 1;
      }
      if (flat) {
        schedule = std::move(attempt);
        axis = *fused;
      }
    }
  }
  const int64_t lanes = context.target.lanes(widest_bits(*node));
  const auto extent = as_int(TRY(schedule.get(axis))->extent);
  if (lanes < 2 || (extent && *extent < 2 * lanes)) return none;
  // An unknown length: single vectors leave the shortest rest, and what blocks of one row read of each other is cut
  // alike.
  const ExprRV vectors =
      TRY(decide(schedule, context, "reduction", "vectors", {1, 2, 4}, extent ? chains_for(*extent, lanes) : 1));
  const int64_t width = lanes * TRY(schedule.get(vectors));
  const LoopRV main = TRY(schedule.peel(axis, width))[0];
  return sum_vectors(schedule, block, main, width, lanes, before);
}

// Rows that go through each step together: where the lanes of one are combined, which takes as long as some of its
// vectors, the next one's vectors have work. Worth it where there is much to compute in a row: as many as the innermost
// loop over rows divides into, up to four, where the nearest cache holds what is computed of them in a quarter.
int64_t rows_together(const std::vector<Work>& list, const RuleContext& context) {
  int64_t bytes = 0;
  std::optional<int64_t> rows;
  bool costly = false;
  for (const Work& work : list) {
    costly = costly || is_costly(work.block());
    const std::vector<const For*> over_rows = loops_of(work, IterType::spatial);
    const auto length = constant_product(loops_of(work, IterType::reduce));
    if (!constant_product(work.loops)) return 1;
    if (!work.reduces()) continue;
    if (over_rows.empty() || !length) return 1;
    rows = as_int(over_rows.back()->extent);
    bytes = std::max(bytes, *length * widest_bits(work.block()) / 8);
  }
  if (!rows || bytes == 0 || !costly) return 1;
  return largest_divisor(*rows, std::clamp<int64_t>(context.target.cache_bytes(1, 32 << 10) / 4 / bytes, 1, 4));
}

// The loops over rows of the blocks that one reduction became are one again: what lies in registers stays there.
Status join_rows(Schedule& schedule, const std::vector<BlockRV>& parts, BlockRV block, size_t outer) {
  std::vector<LoopRV> rows;
  std::set<Id> known;
  for (const BlockRV& part : parts) {
    const LoopRV loop = TRY(schedule.get_loops(part)).at(outer);
    if (known.insert(TRY(schedule.get(loop))->id).second) rows.push_back(loop);
  }
  const LoopRV last = TRY(schedule.get_loops(block)).at(outer);
  if (known.insert(TRY(schedule.get(last))->id).second) rows.push_back(last);
  if (rows.size() > 1) TRY(schedule.merge(rows));
  return support::success();
}

// Brings all blocks into the loops over rows, `together` rows at a time, and schedules each there. Where several rows
// go together, a block that cannot is a refusal. Gives whether there is work enough for threads.
Result<bool> by_rows(Schedule& schedule, const RuleContext& context, const std::vector<Work>& list, size_t rows,
                     int64_t together) {
  // The loops over rows become one only when all blocks are in them: quotients by an extent that is not known say
  // little about which part of a block a row needs.
  std::vector<LoopRV> outer;
  if (rows > 0) {
    const std::vector<LoopRV> loops = TRY(schedule.get_loops(TRY(handle(schedule, list.back()))));
    outer = {loops.begin(), loops.begin() + static_cast<ptrdiff_t>(rows)};
    if (together > 1) outer.back() = TRY(schedule.split(outer.back(), {Factor(), Factor(together)}))[0];
    const Work& anchor = list.back();
    for (size_t i = list.size() - 1; i-- > 0;)
      if (list[i].loops.size() < rows || list[i].loops[rows - 1] != anchor.loops[rows - 1])
        TRY(schedule.compute_at(TRY(schedule.get_block(list[i].block().name)), outer.back()));
  }
  int64_t total = 0;
  std::optional<LoopRV> groups_before;
  for (const Work& work : list) {
    const BlockRV block = TRY(schedule.get_block(work.block().name));
    const auto work_of_block = constant_product(work.loops);
    total += work_of_block ? *work_of_block * (is_costly(work.block()) ? 8 : 1) : 8 * parallel_work;
    Schedule attempt = schedule;
    if (work.reduces()) {
      auto parts = reduce_row(attempt, context, block, std::exchange(groups_before, {}));
      if (together > 1) TRY(join_rows(attempt, TRY(parts), block, outer.size()));
      if (parts.ok()) schedule = std::move(attempt);
    } else {
      const auto groups = vectorize_row(attempt, context, block, outer.size() + (together > 1));
      if (groups.ok()) schedule = std::move(attempt);
      groups_before = groups.ok() ? *groups : std::nullopt;
    }
  }
  if (total >= parallel_work) try_parallel(schedule, outer);
  return total >= parallel_work;
}

}  // namespace

Result<Outcome> reduction(Schedule& schedule, const RuleContext& context) {
  const std::vector<Work> before = works(schedule.function());
  bool any = false;
  for (const Work& work : before) {
    if (has_effects(work.block())) return Outcome(fmt::format("block '{}' has effects", work.block().name));
    any = any || work.reduces();
    if (constant_product(work.loops) == 0) return Outcome("there is nothing to compute");
    if (work.reduces() && !is_reduction(work.block()))
      return Outcome(fmt::format("block '{}' is not a plain reduction", work.block().name));
  }
  if (!any) return Outcome("no block is a reduction");
  TRY(inline_producers(schedule, [](const Work& work) { return is_costly(work.block()); }));
  std::vector<BlockRV> partial;
  for (const Work& work : works(schedule.function())) {
    if (!work.reduces()) continue;
    const BlockRV block = TRY(handle(schedule, work));
    const auto cut = TRY(cut_reduction(schedule, block, context.target.lanes(widest_bits(work.block()))));
    if (cut) partial.push_back(*cut);
  }

  const std::vector<Work> list = works(schedule.function());
  size_t rows = std::numeric_limits<size_t>::max();
  bool is_one_row = true;
  for (const Work& work : list) {
    if (!work.reduces()) continue;
    const std::vector<const For*> over_rows = loops_of(work, IterType::spatial);
    rows = std::min(rows, over_rows.size());
    is_one_row = is_one_row && constant_product(over_rows) == 1;
  }
  // A single row needs no loop that blocks are brought into.
  if (is_one_row) rows = 0;
  const Work& anchor = list.back();
  for (const Work& work : list)
    if (&work != &anchor && work.is_output)
      return Outcome(fmt::format("block '{}' also writes an output", work.block().name));
  if (rows > 0 && TRY(schedule.get_loops(TRY(handle(schedule, anchor)))).size() < rows)
    return Outcome(fmt::format("block '{}' has fewer loops than rows", anchor.block().name));
  const int64_t most = rows > 0 && list.size() > 1 && partial.empty() ? rows_together(list, context) : 1;
  std::vector<int64_t> choices{1};
  if (most > 1) choices.push_back(most);
  const int64_t together = TRY(schedule.get(TRY(decide(schedule, context, "reduction", "rows", choices, most))));
  Schedule attempt = schedule;
  if (together > 1 && by_rows(attempt, context, list, rows, together)) {
    schedule = std::move(attempt);
    return Outcome();
  }
  const bool enough = TRY(by_rows(schedule, context, list, rows, 1));
  if (enough && rows == 0)  // pieces of one row
    for (const BlockRV& block : partial) try_parallel(schedule, {TRY(schedule.get_loops(block))[0]});
  return Outcome();
}

}  // namespace lathe::schedule
