// Rows: what reductions over the last axis, and what is computed beside them, do with one row in vectors.
#include "schedule/rules/nest/rows.h"

#include "ir/visit.h"
#include "schedule/codes.h"

namespace lathe::schedule {

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

Result<bool> walks_a_row(Schedule& schedule, BlockRV block, LoopRV loop) {
  const Ref<Block> node = TRY(schedule.get(block));
  const Ref<For> row = TRY(schedule.get(loop));
  for (const Access& access : accesses(schedule.function().body)) {
    if (access.block != node.get()) continue;
    const auto stride = stride_of(access, *row);
    if (!stride || *stride < 0 || *stride > 1) return false;
  }
  return true;
}

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

// Lanes of the vectors that a row of so many elements is summed in: whole vectors where it has two of them, else
// halves, or quarters. 1 where it has not even these.
int64_t lanes_of_row(std::optional<int64_t> extent, int64_t full) {
  if (!extent) return full;
  for (int64_t lanes = full; lanes >= 4; lanes /= 2)
    if (*extent >= 2 * lanes) return lanes;
  return 1;
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
  if (!TRY(walks_a_row(schedule, block, loops.back()))) return none;
  const int64_t width = lanes * (extent ? chains_for(*extent, lanes) : 1);
  const std::vector<LoopRV> parts = TRY(schedule.peel(loops.back(), width));
  const std::vector<LoopRV> groups = TRY(schedule.split(parts[0], {Factor(), width}));
  TRY(vectors_of(schedule, groups[1], width, std::min(width, lanes * vectors_together(*node))));
  if (extent && parts.size() > 1) TRY(vectorize_by(schedule, parts[1], lanes, lanes));
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

}  // namespace

// One after another the lanes would wait for each other as often as there are lanes.
Result<std::vector<BlockRV>> add_lanes(Schedule& schedule, BlockRV block, int64_t lanes) {
  std::vector<BlockRV> parts;
  LoopRV rest = TRY(schedule.get_loops(block)).back();
  for (int64_t half = lanes / 2; half > 1; half /= 2) {
    const std::vector<LoopRV> halves = TRY(schedule.split(rest, {Factor(), half}));
    parts.push_back(TRY(lanes_of(schedule, halves[0], halves[1], half, half)));
    TRY(schedule.unroll(halves[0]));
    rest = TRY(schedule.get_loops(block)).back();
  }
  TRY(schedule.unroll(rest));
  return parts;
}

namespace {

// The vectors of a row of unknown length, over `groups`, in `chains` partial results side by side, and those that are
// left behind them. `partial` is the block of one vector of partial results, `lane` the loop over its lanes.
Status chains_of(Schedule& schedule, BlockRV partial, LoopRV groups, LoopRV lane, int64_t chains) {
  const std::vector<LoopRV> parts = TRY(schedule.peel(groups, chains));
  const std::vector<LoopRV> cut = TRY(schedule.split(parts[0], {Factor(), chains}));
  const BlockRV chain = TRY(schedule.rfactor(cut[1], -2));
  TRY(schedule.set_scope(chain, 0, "register"));
  TRY(schedule.unroll(cut[1]));
  TRY(schedule.vectorize(lane));
  const auto start = TRY(start_of(schedule, chain));
  if (!start) return refuse(codes::not_inlinable, "what partial results start from is in their own block");
  const std::vector<LoopRV> started = TRY(schedule.get_loops(*start)), joined = TRY(schedule.get_loops(partial));
  TRY(schedule.unroll(started.end()[-2]));
  TRY(schedule.vectorize(started.back()));
  TRY(schedule.reorder({joined.back(), joined.end()[-2]}));
  TRY(schedule.unroll(joined.back()));
  TRY(schedule.vectorize(joined.end()[-2]));
  for (const BlockRV& rest : TRY(schedule.get_child_blocks(parts[1])))
    TRY(schedule.vectorize(TRY(schedule.get_loops(rest)).back()));
  return support::success();
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
  const std::vector<BlockRV> halves = TRY(add_lanes(schedule, block, lanes));
  parts.insert(parts.end(), halves.begin(), halves.end());
  return parts;
}

// The same over a loop of unknown length, which leaves less than a vector: what blocks of one row read of each other is
// cut alike.
Result<std::vector<BlockRV>> sum_unknown(Schedule& schedule, BlockRV block, LoopRV loop, int64_t chains,
                                         int64_t lanes) {
  const std::vector<LoopRV> cut = TRY(schedule.split(TRY(schedule.peel(loop, lanes))[0], {Factor(), lanes}));
  std::vector<BlockRV> parts{TRY(schedule.rfactor(cut[1], -1))};
  TRY(schedule.set_scope(parts[0], 0, "register"));
  const auto start = TRY(start_of(schedule, parts[0]));
  if (!start) return refuse(codes::not_inlinable, "partial results start where they are added to");
  TRY(schedule.vectorize(TRY(schedule.get_loops(*start)).back()));
  TRY(chains_of(schedule, parts[0], cut[0], cut[1], chains));
  const std::vector<BlockRV> halves = TRY(add_lanes(schedule, block, lanes));
  parts.insert(parts.end(), halves.begin(), halves.end());
  return parts;
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
  if (!TRY(walks_a_row(schedule, block, axis))) return none;
  if (reduce_loops > 1) {
    // Where the reduced axes lie behind one another they are one row.
    Schedule attempt = schedule;
    const auto fused = attempt.fuse({loops.end() - static_cast<ptrdiff_t>(reduce_loops), loops.end()});
    if (fused.ok() && as_int(last->extent) && TRY(walks_a_row(attempt, block, *fused))) {
      schedule = std::move(attempt);
      axis = *fused;
    }
  }
  const auto extent = as_int(TRY(schedule.get(axis))->extent);
  const int64_t lanes = lanes_of_row(extent, context.target.lanes(widest_bits(*node)));
  if (lanes < 2) return none;
  const ExprRV vectors =
      TRY(decide(schedule, context, "reduction", "vectors", {1, 2, 4}, extent ? chains_for(*extent, lanes) : 4));
  const int64_t chains = TRY(schedule.get(vectors));
  if (!extent && chains > 1) {
    Schedule attempt = schedule;
    if (auto parts = sum_unknown(attempt, block, axis, chains, lanes)) {
      schedule = std::move(attempt);
      return parts;
    }
  }
  const int64_t width = extent ? lanes * chains : lanes;
  const LoopRV main = TRY(schedule.peel(axis, width))[0];
  return sum_vectors(schedule, block, main, width, lanes, before);
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

}  // namespace

Status schedule_rows(Schedule& schedule, const RuleContext& context, const std::vector<std::string>& names,
                     size_t outer, int64_t together) {
  std::optional<LoopRV> groups_before;
  for (const std::string& name : names) {
    const BlockRV block = TRY(schedule.get_block(name));
    const std::vector<Work> list = works(schedule.function());
    Schedule attempt = schedule;
    if (find(list, name)->reduces()) {
      auto parts = reduce_row(attempt, context, block, std::exchange(groups_before, {}));
      if (together > 1) TRY(join_rows(attempt, TRY(parts), block, outer));
      if (parts.ok()) schedule = std::move(attempt);
    } else {
      const auto groups = vectorize_row(attempt, context, block, outer + (together > 1));
      if (groups.ok()) schedule = std::move(attempt);
      groups_before = groups.ok() ? *groups : std::nullopt;
    }
  }
  return support::success();
}

}  // namespace lathe::schedule
