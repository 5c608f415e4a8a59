// elementwise: a function without reductions. Chains become one block each output; its contiguous loops become one, cut
// into vectors; the outermost runs in parallel where there is enough to do.
#include "schedule/rules/nest/transposed.h"
#include "schedule/rules/nest/work.h"
#include "support/mutation.h"

namespace lathe::schedule {

Result<Outcome> elementwise(Schedule& schedule, const RuleContext& context) {
  const std::vector<Work> before = works(schedule.function());
  if (before.empty()) return Outcome("the function has no blocks");
  for (const Work& work : before) {
    if (work.reduces()) return Outcome(fmt::format("block '{}' is a reduction", work.block().name));
    if (has_effects(work.block())) return Outcome(fmt::format("block '{}' has effects", work.block().name));
    for (const IterVar& iter : work.block().iter_vars)
      if (iter->type != IterType::spatial)
        return Outcome(fmt::format("axis '{}' of block '{}' is not spatial", iter->var->name, work.block().name));
  }
  TRY(inline_producers(schedule, [](const Work&) { return false; }));
  for (const Work& work : works(schedule.function())) {
    std::vector<BlockRV> parts{TRY(handle(schedule, work))};
    // Padding around what is turned: squares need no condition.
    const int64_t lanes = context.target.lanes(widest_bits(work.block()));
    if (is_conditional(work.block()) && crossing_loop(*work.function, work, lanes))
      if (const auto sides = schedule.split_padding(parts[0])) parts.insert(parts.end(), sides->begin(), sides->end());
    for (const BlockRV& part : parts) TRY(vectorize_elementwise(schedule, context, part));
  }
  return Outcome();
}

}  // namespace lathe::schedule
