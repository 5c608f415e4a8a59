// columns: reductions over axes that are not the last, in groups that share what they read (softmax over channels,
// layer normalisation over pixels). Vectors run along the last axis, so few columns at once that what is read of them
// stays in the second cache from one block to the next.
#include "schedule/rules/nest/rows.h"
#include "schedule/rules/tile/tile_registers.h"

namespace lathe::schedule {

namespace {

// The innermost spatial loop along which vectors can run: every access that it moves goes to the next element, and the
// result does. Null where there is none.
const For* lane_of(const PrimFunc& function, const Work& work) {
  const auto is_contiguous = [&](const For& loop) {
    for (const Access& access : accesses(function.body)) {
      if (access.block != &work.block()) continue;
      const auto stride = stride_of(access, loop);
      if (!stride || *stride < 0 || *stride > 1 || (access.writes && *stride != 1)) return false;
    }
    return true;
  };
  const std::vector<const For*> spatial = loops_of(work, IterType::spatial);
  const auto found =
      std::find_if(spatial.rbegin(), spatial.rend(), [&](const For* loop) { return is_contiguous(*loop); });
  return found == spatial.rend() ? nullptr : *found;
}

// Long sums are added up in parts.
Status sum_columns_in_parts(Schedule& schedule) {
  for (const Work& work : works(schedule.function())) {
    if (!work.reduces()) continue;
    const BlockRV block = TRY(handle(schedule, work));
    const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
    std::vector<LoopRV> sums;
    for (const For* loop : loops_of(work, IterType::reduce))
      sums.push_back(
          loops[static_cast<size_t>(std::find(work.loops.begin(), work.loops.end(), loop) - work.loops.begin())]);
    TRY(sum_in_parts(schedule, block, sums, TilePlan().chain));
  }
  return support::success();
}

// What reductions give, and what is computed of it element by element: a logarithm of each sum.
std::set<const ir::Node*> results_of(const std::vector<Work>& list) {
  std::set<const ir::Node*> results;
  const auto is_one_for_one = [&](const Work& work, const Buffer& written) {
    const std::vector<Buffer> read = operands_of(work.block());
    return std::any_of(read.begin(), read.end(), [&](const Buffer& each) {
      return results.count(each.get()) > 0 && each->shape.size() == written->shape.size() &&
             std::equal(each->shape.begin(), each->shape.end(), written->shape.begin(),
                        [](const Expr& a, const Expr& b) { return same(a, b); });
    });
  };
  for (const Work& work : list)
    for (const Buffer& buffer : buffers_written(work.block().body))
      if (work.reduces() || is_one_for_one(work, buffer)) results.insert(buffer.get());
  return results;
}

// The loops of the last block that its reductions have, too, in order: what is read of them depends on these alone.
std::vector<size_t> common_loops(const PrimFunc& function, const std::vector<Work>& list) {
  const std::set<const ir::Node*> results = results_of(list);
  const Work& last = list.back();
  std::vector<size_t> common;
  for (size_t i = 0; i < last.loops.size(); ++i) {
    const bool is_read = [&]() {
      for (const Access& access : accesses(function.body)) {
        if (access.block != &last.block() || access.writes || !results.count(access.buffer.get())) continue;
        for (const Range& range : access.region)
          if (uses_var(range.min, last.loops[i]->loop_var)) return true;
      }
      return false;
    }();
    if (is_read || is_int(last.loops[i]->extent, 1)) common.push_back(i);
  }
  return common;
}

// How many columns go together: whole vectors where the axis divides into them, so few that what is read of them stays
// in half of the second cache. Longer columns are read anew by each block in any case, and memory is best walked in its
// order then: each core takes its part of the axis.
int64_t preferred_width(std::optional<int64_t> extent, std::optional<int64_t> column_bytes, int64_t lanes,
                        const target::Target& target) {
  if (!extent || *extent <= lanes) return extent.value_or(0);
  const int64_t fit = target.cache_bytes(2, 512 << 10) / 2 / std::max<int64_t>(column_bytes.value_or(1), 1) / lanes;
  const auto divides = [&](int64_t width) { return *extent % width == 0; };
  if (fit < least_down_columns) return divides(target.cores * lanes) ? *extent / target.cores : *extent;
  return divides(lanes) ? lanes * vectors_down_columns(*extent / lanes, target.vector_bits, target, fit) : *extent;
}

// One block inside the `outer` loops over groups of columns, `width` of them: sums go round their vectors, which are
// registers where the width is whole vectors.
Status schedule_columns(Schedule& schedule, const RuleContext& context, const std::string& name, size_t outer,
                        int64_t width) {
  const BlockRV block = TRY(schedule.get_block(name));
  const Work work = *find(works(schedule.function()), name);
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  const For* along = lane_of(schedule.function(), work);
  if (!along) return refuse(codes::loop_kind, fmt::format("'{}' is not contiguous any more", name));
  const int64_t lanes = context.target.lanes(widest_bits(work, *along));
  const bool is_whole = width > 0 && width % lanes == 0;
  const bool in_registers = width <= most_down_columns(context.target.vector_bits, context.target) * lanes;
  const auto vectors = [&](LoopRV loop, int64_t together) -> Status {
    if (!is_whole) return vectorize_by(schedule, loop, lanes * together, lanes);
    const int64_t group = lanes * largest_divisor(width / lanes, together);
    const std::vector<LoopRV> cut = TRY(schedule.split(loop, {Factor(), group}));
    if (in_registers) TRY(schedule.unroll(cut[0]));
    return schedule.vectorize(cut[1]);
  };
  // What is summed apart, what is summed, and vectors innermost.
  std::vector<LoopRV> apart, sums;
  LoopRV lane = loops.back();
  const std::vector<const For*> reduced = loops_of(work, IterType::reduce);
  for (size_t i = outer; i < work.loops.size(); ++i) {
    const bool is_sum = std::find(reduced.begin(), reduced.end(), work.loops[i]) != reduced.end();
    if (work.loops[i] == along)
      lane = loops[i];
    else
      (is_sum ? sums : apart).push_back(loops[i]);
  }
  if (sums.empty()) return vectors(lane, vectors_together(work.block()));
  std::vector<LoopRV> order = apart;
  order.insert(order.end(), sums.begin(), sums.end());
  order.push_back(lane);
  TRY(schedule.reorder(order));
  const bool is_one = work.block().body.is<BufferStore>();
  if (is_one && is_whole && in_registers && apart.empty()) TRY(schedule.set_scope(block, 0, "register"));
  // Sums of an unknown length have a block for their start already.
  if (work.block().init) {
    const BlockRV start = TRY(schedule.decompose_reduction(block, sums[0]));
    TRY(vectors(TRY(schedule.get_loops(start)).back(), 1));
  }
  return vectors(lane, 1);
}

}  // namespace

Result<Outcome> columns(Schedule& schedule, const RuleContext& context) {
  if (const auto why = no_plain_reductions(works(schedule.function()))) return why;
  TRY(inline_producers(schedule, [](const Work& work) { return is_costly(work.block()); }));
  TRY(sum_columns_in_parts(schedule));
  const std::vector<Work> list = works(schedule.function());
  if (list.size() < 2) return Outcome("the reduction is by itself");
  const Work& last = list.back();
  if (last.reduces()) return Outcome(fmt::format("nothing follows the reduction '{}'", last.block().name));
  int64_t column_bytes = 0;
  bool is_long = false;
  for (const Work& work : list) {
    if (&work != &last && work.is_output)
      return Outcome(fmt::format("block '{}' also writes an output", work.block().name));
    const For* lane = lane_of(schedule.function(), work);
    if (!lane || (&work == &last && lane != work.loops.back()))
      return Outcome(fmt::format("block '{}' is not contiguous along an axis that stays", work.block().name));
    if (work.reduces()) {
      const int64_t length = constant_product(loops_of(work, IterType::reduce)).value_or(0);
      is_long = is_long || length != 1;
      column_bytes = std::max(column_bytes, length * widest_bits(work.block()) / 8);
    }
  }
  if (!is_long) return Outcome("a single element is reduced");
  const std::vector<size_t> common = common_loops(schedule.function(), list);
  if (common.empty() || common.back() + 1 != last.loops.size()) return Outcome("the reduced axis is the last one");

  const auto extent = as_int(last.loops.back()->extent);
  const int64_t lanes = context.target.lanes(widest_bits(last));
  const int64_t preferred = preferred_width(extent, column_bytes, lanes, context.target);
  std::set<int64_t> choices{preferred, extent.value_or(preferred)};
  const int64_t most = most_down_columns(context.target.vector_bits, context.target);
  for (int64_t width = lanes; extent && width <= most * lanes; width += lanes)
    if (*extent % width == 0) choices.insert(width);
  const int64_t width = TRY(
      schedule.get(TRY(decide(schedule, context, "columns", "width", {choices.begin(), choices.end()}, preferred))));

  // [outer…, groups of columns, what is reduced…, columns of a group].
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(TRY(handle(schedule, last))));
  std::vector<LoopRV> outer, order;
  for (const size_t i : common)
    if (i + 1 < loops.size()) outer.push_back(loops[i]);
  LoopRV lane = loops.back();
  if (extent && width > 0 && width < *extent) {
    const std::vector<LoopRV> cut = TRY(schedule.split(lane, {Factor(), width}));
    outer.push_back(cut[0]);
    lane = cut[1];
  }
  if (outer.empty()) outer.push_back(TRY(schedule.add_unit_loop(loops[0])));
  order = outer;
  for (size_t i = 0; i + 1 < loops.size(); ++i)
    if (std::find(common.begin(), common.end(), i) == common.end()) order.push_back(loops[i]);
  order.push_back(lane);
  TRY(schedule.reorder(order));
  for (size_t i = list.size() - 1; i-- > 0;)
    TRY(schedule.compute_at(TRY(schedule.get_block(list[i].block().name)), outer.back()));
  if (const auto again = computed_again(list, works(schedule.function()))) return again;
  for (const Work& work : list) TRY(schedule_columns(schedule, context, work.block().name, outer.size(), width));
  if (work_for_threads(list) >= parallel_work) try_parallel(schedule, outer);
  return Outcome();
}

}  // namespace lathe::schedule
