// fallback: any function. What is elementwise is inlined; of each block the outermost independent loops run in
// parallel, and the innermost loop is vectorised where it is spatial, contiguous and independent. Nothing here can
// fail: what is refused is left as it is.
#include "schedule/rules/work.h"

namespace lathe::schedule {

namespace {

// Whether every access of the block moves by at most one element with its innermost loop, and its store by one.
bool walks_rows(const PrimFunc& function, const Work& work) {
  if (work.loops.empty()) return false;
  for (const Access& access : accesses(function.body)) {
    if (access.block != &work.block()) continue;
    const auto stride = stride_of(access, *work.loops.back());
    if (!stride || *stride < 0 || *stride > 1 || (access.writes && *stride != 1)) return false;
  }
  return true;
}

Status vectorize_innermost(Schedule& schedule, const RuleContext& context, const Work& work) {
  const BlockRV block = TRY(handle(schedule, work));
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  const int64_t lanes = context.target.lanes(widest_bits(work.block()));
  const auto extent = as_int(TRY(schedule.get(loops.back()))->extent);
  if (lanes < 2 || (extent && *extent < lanes)) return support::success();
  const std::vector<LoopRV> parts = TRY(schedule.peel(loops.back(), lanes));
  const std::vector<LoopRV> vector = TRY(schedule.split(parts[0], {Factor(), lanes}));
  return schedule.vectorize(vector[1]);
}

}  // namespace

Result<Outcome> fallback(Schedule& schedule, const RuleContext& context) {
  if (works(schedule.function()).empty()) return Outcome("the function has no blocks");
  TRY(inline_producers(schedule, [](const Work& work) { return has_effects(work.block()); }));
  for (const Work& work : works(schedule.function())) {
    if (walks_rows(schedule.function(), work)) {
      Schedule attempt = schedule;
      if (vectorize_innermost(attempt, context, work)) schedule = std::move(attempt);
    }
    Schedule attempt = schedule;
    const BlockRV block = TRY(handle(attempt, work));
    if (parallelize_outer(attempt, block)) schedule = std::move(attempt);
  }
  return Outcome();
}

}  // namespace lathe::schedule
