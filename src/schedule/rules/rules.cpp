#include "schedule/rules/rules.h"

#include "schedule/codes.h"
#include "support/mutation.h"

namespace lathe::schedule {

LATHE_FAULT(schedule_functions_mixes_names, "schedule_test", "a function's schedule is filed under the one before it");

const std::vector<Rule>& rules() {
  static const std::vector<Rule> rows{
      {"elementwise", elementwise}, {"recurrence", recurrence}, {"gemm", gemm}, {"conv", conv}, {"pool", pool},
      {"reduction", reduction},     {"fallback", fallback},
  };
  return rows;
}

Schedule schedule_function(Schedule schedule, const target::Target& target, Decider& decider,
                           const ir::PassContext& context) {
  for (const Rule& rule : rules()) {
    Schedule attempt = schedule;
    NotingDecider noting(decider);
    const RuleContext rule_context{target, noting};
    const Result<Outcome> outcome = support::catch_diagnostics([&]() { return rule.apply(attempt, rule_context); });
    if (outcome.ok() && !*outcome) {
      context.remark_taken(std::string(rule.name), schedule.func_working_on(), noting.text());
      return attempt;
    }
    context.remark(std::string(rule.name), schedule.func_working_on(),
                   outcome.ok() ? **outcome : outcome.diagnostics()[0].message);
  }
  return schedule;
}

Result<ir::IRModule> schedule_functions(ir::IRModule module, const target::Target& target, Decider& decider,
                                        const ir::PassContext& context) {
  std::string last;
  for (const auto& [name, base] : std::vector(module.functions())) {
    const auto* function = base.as<PrimFunc>();
    if (!function || !root_of(*function) || function->attrs.get_or("tir.is_scheduled", false)) continue;
    if (context.cancelled && context.cancelled()) break;
    Result<Schedule> schedule = Schedule::create(Function(function), name);
    if (!schedule) {
      context.remark("schedule", name, schedule.diagnostics()[0].message);
      continue;
    }
    const Schedule done = schedule_function(*std::move(schedule), target, decider, context);
    module.set(support::flip(schedule_functions_mixes_names) && !last.empty() ? last : name, done.mod().find(name));
    last = name;
  }
  return module;
}

}  // namespace lathe::schedule
