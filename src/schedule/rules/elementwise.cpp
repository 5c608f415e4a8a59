// elementwise: a function without reductions. Chains become one block each output; its contiguous loops become one, cut
// into vectors; the outermost runs in parallel where there is enough to do.
#include "schedule/rules/nest/transposed.h"
#include "schedule/rules/nest/work.h"
#include "support/mutation.h"

namespace lathe::schedule {

namespace {

std::vector<std::string> names_of_blocks(const Schedule& schedule) {
  std::vector<std::string> names;
  for (const Work& work : works(schedule.function())) names.push_back(work.block().name);
  return names;
}

}  // namespace

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
  for (const std::string& name : names_of_blocks(schedule)) {
    const BlockRV block = TRY(schedule.get_block(name));
    // Padding around what is turned: squares need no condition.
    std::vector<BlockRV> sides;
    const std::vector<Work> list = works(schedule.function());
    const Work& work = *find(list, name);
    if (is_conditional(work.block()) &&
        crossing_loop(schedule.function(), work, context.target.lanes(widest_bits(work.block()))))
      if (auto split = schedule.split_padding(block)) sides = *std::move(split);
    TRY(vectorize_elementwise(schedule, context, block));
    for (const BlockRV& side : sides) TRY(vectorize_elementwise(schedule, context, side));
  }
  return Outcome();
}

}  // namespace lathe::schedule
