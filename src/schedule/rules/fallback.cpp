// fallback: any function. What is elementwise is inlined; of each block the outermost independent loops run in
// parallel, and the innermost loop is vectorised where it is spatial, contiguous and independent. Nothing here can
// fail: what is refused is left as it is.
#include "schedule/rules/nest/work.h"

namespace lathe::schedule {

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
