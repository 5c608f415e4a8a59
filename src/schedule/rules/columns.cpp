// columns: reductions over axes that are not the last, in groups that share what they read (softmax over channels,
// layer normalisation over pixels). Vectors run along the last axis, so many columns at once that what is computed of
// them stays in the second cache from one block to the next; their results are registers.
#include "schedule/rules/nest/rows.h"
#include "schedule/rules/tile/tile_model.h"

namespace lathe::schedule {

namespace {

constexpr int64_t most_vectors = 4;  // side by side: they hide the latency of an addition

// Whether vectors can run along the loop: every access that it moves goes to the next element, and the result does.
bool is_contiguous_along(const PrimFunc& function, const Work& work, const For& lane) {
  for (const Access& access : accesses(function.body)) {
    if (access.block != &work.block()) continue;
    const auto stride = stride_of(access, lane);
    if (!stride || *stride < 0 || *stride > 1 || (access.writes && *stride != 1)) return false;
  }
  return true;
}

// The loops of the last block that its reductions have, too, in order: what is read of them depends on these alone.
std::vector<size_t> common_loops(const PrimFunc& function, const std::vector<Work>& list) {
  std::set<const ir::Node*> results;
  for (const Work& work : list)
    if (work.reduces()) results.insert(work.block().body.as<BufferStore>()->buffer.get());
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
    if (is_read) common.push_back(i);
  }
  return common;
}

// Lanes that go together: whole vectors where the axis divides into them, all of it where it is short or does not.
int64_t preferred_width(std::optional<int64_t> extent, std::optional<int64_t> column_bytes, int64_t lanes,
                        const target::Target& target) {
  if (!extent || *extent <= lanes) return extent.value_or(0);
  const int64_t fit = target.cache_bytes(2, 512 << 10) / 2 / std::max<int64_t>(column_bytes.value_or(1), 1) / lanes;
  for (int64_t vectors = std::clamp<int64_t>(fit, 1, most_vectors); vectors > 0; --vectors)
    if (*extent % (vectors * lanes) == 0) return vectors * lanes;
  return *extent;
}

// One block inside the loops over columns, `width` of them: sums go round their vectors, which are registers where the
// width is whole vectors.
Status schedule_columns(Schedule& schedule, const RuleContext& context, const std::string& name, int64_t width) {
  const BlockRV block = TRY(schedule.get_block(name));
  const Work work = *find(works(schedule.function()), name);
  const int64_t lanes = context.target.lanes(widest_bits(work.block()));
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  const auto handle_of = [&](const For* loop) {
    return loops[static_cast<size_t>(std::find(work.loops.begin(), work.loops.end(), loop) - work.loops.begin())];
  };
  const LoopRV lane = handle_of(loops_of(work, IterType::spatial).back());
  const auto vectors = [&](LoopRV loop, int64_t together) -> Status {
    if (width == 0 || width % lanes != 0) return vectorize_by(schedule, loop, lanes * together, lanes);
    const std::vector<LoopRV> cut = TRY(schedule.split(loop, {Factor(), std::min(width, lanes * together)}));
    TRY(schedule.unroll(cut[0]));
    return schedule.vectorize(cut[1]);
  };
  if (!work.reduces()) return vectors(lane, vectors_together(work.block()));
  std::vector<LoopRV> order;
  for (const For* loop : loops_of(work, IterType::reduce)) order.push_back(handle_of(loop));
  order.push_back(lane);
  TRY(schedule.reorder(order));
  if (width > 0 && width % lanes == 0 && width <= most_vectors * lanes) TRY(schedule.set_scope(block, 0, "register"));
  const BlockRV start = TRY(schedule.decompose_reduction(block, order[0]));
  TRY(vectors(TRY(schedule.get_loops(start)).back(), 1));
  return vectors(lane, 1);
}

}  // namespace

Result<Outcome> columns(Schedule& schedule, const RuleContext& context) {
  if (const auto why = no_plain_reductions(works(schedule.function()))) return why;
  TRY(inline_producers(schedule, [](const Work& work) { return is_costly(work.block()); }));
  const std::vector<Work> list = works(schedule.function());
  if (list.size() < 2) return Outcome("the reduction is by itself");
  const Work& last = list.back();
  if (last.reduces()) return Outcome(fmt::format("nothing follows the reduction '{}'", last.block().name));
  int64_t total = 0, column_bytes = 0;
  bool is_known = true;
  for (const Work& work : list) {
    const std::vector<const For*> spatial = loops_of(work, IterType::spatial);
    if (spatial.empty()) return Outcome(fmt::format("block '{}' has no spatial axis", work.block().name));
    if (&work != &last && work.is_output)
      return Outcome(fmt::format("block '{}' also writes an output", work.block().name));
    if (!is_contiguous_along(schedule.function(), work, *spatial.back()))
      return Outcome(fmt::format("block '{}' is not contiguous along axis '{}'", work.block().name,
                                 spatial.back()->loop_var->name));
    const auto own = constant_product(work.loops);
    is_known = is_known && own;
    total += own ? *own * (is_costly(work.block()) ? 8 : 1) : 8 * parallel_work;
    if (work.reduces())
      column_bytes += constant_product(loops_of(work, IterType::reduce)).value_or(0) * widest_bits(work.block()) / 8;
  }
  const std::vector<size_t> common = common_loops(schedule.function(), list);
  if (common.empty() || common.back() + 1 != last.loops.size()) return Outcome("the reduced axis is the last one");
  if (common.size() == last.loops.size()) return Outcome("the last block has no axis that is reduced");

  const auto extent = as_int(last.loops.back()->extent);
  const int64_t lanes = context.target.lanes(widest_bits(last.block()));
  const int64_t preferred = preferred_width(extent, column_bytes, lanes, context.target);
  std::vector<int64_t> choices{preferred};
  for (int64_t width = lanes; extent && width <= most_vectors * lanes; width += lanes)
    if (*extent % width == 0 && width != preferred) choices.push_back(width);
  const int64_t width = TRY(schedule.get(TRY(decide(schedule, context, "columns", "width", choices, preferred))));

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
  order = outer;
  for (size_t i = 0; i + 1 < loops.size(); ++i)
    if (std::find(common.begin(), common.end(), i) == common.end()) order.push_back(loops[i]);
  order.push_back(lane);
  TRY(schedule.reorder(order));
  if (!outer.empty())
    for (size_t i = list.size() - 1; i-- > 0;)
      TRY(schedule.compute_at(TRY(schedule.get_block(list[i].block().name)), outer.back()));
  if (const auto again = computed_again(list, works(schedule.function()))) return again;
  for (const Work& work : list) TRY(schedule_columns(schedule, context, work.block().name, width));
  if (total >= parallel_work) try_parallel(schedule, outer);
  return Outcome();
}

}  // namespace lathe::schedule
