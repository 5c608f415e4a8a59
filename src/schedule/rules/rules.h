// Rules: programs over Schedule's public methods that give a function its default schedule. A rule is chosen by what
// the blocks compute, never by the name of an operator; one that declines says why.
#pragma once

#include "ir/pass.h"
#include "schedule/rules/nest/context.h"

namespace lathe::schedule {

struct Rule {
  std::string_view name;
  // Schedules the function that `schedule` works on. A diagnostic is a primitive's refusal: the rule declined too.
  Result<Outcome> (*apply)(Schedule& schedule, const RuleContext& context);
};

Result<Outcome> transform(Schedule& schedule, const RuleContext& context);
Result<Outcome> stencil(Schedule& schedule, const RuleContext& context);
Result<Outcome> elementwise(Schedule& schedule, const RuleContext& context);
Result<Outcome> reduction(Schedule& schedule, const RuleContext& context);
Result<Outcome> gemm(Schedule& schedule, const RuleContext& context);
Result<Outcome> conv(Schedule& schedule, const RuleContext& context);
Result<Outcome> recurrence(Schedule& schedule, const RuleContext& context);
Result<Outcome> attention(Schedule& schedule, const RuleContext& context);
Result<Outcome> dot(Schedule& schedule, const RuleContext& context);
Result<Outcome> pool(Schedule& schedule, const RuleContext& context);
Result<Outcome> columns(Schedule& schedule, const RuleContext& context);
Result<Outcome> fallback(Schedule& schedule, const RuleContext& context);

// In the order in which they are asked.
const std::vector<Rule>& rules();

// Why a rule's program is not taken, if it is not. An empty function takes all.
using Acceptance = std::function<Outcome(const Function& scheduled)>;

// The schedule of one function by the first rule that takes it and whose program is accepted; the remarks say why the
// earlier ones were not, and what that one decided. A function that no rule takes stays as it is.
Schedule schedule_function(Schedule schedule, const target::Target& target, Decider& decider,
                           const ir::PassContext& context, const Acceptance& acceptance = {});

// Schedules every tensor function that still has blocks and is not marked "tir.is_scheduled".
Result<ir::IRModule> schedule_functions(ir::IRModule module, const target::Target& target, Decider& decider,
                                        const ir::PassContext& context, const Acceptance& acceptance = {});

}  // namespace lathe::schedule
