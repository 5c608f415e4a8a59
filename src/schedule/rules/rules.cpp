#include "schedule/rules/rules.h"

#include "schedule/codes.h"
#include "support/mutation.h"
#include "tir/rewrite.h"

namespace lathe::schedule {

LATHE_FAULT(schedule_functions_mixes_names, "schedule_test", "a function's schedule is filed under the one before it");

namespace {

// What the fault does.
ir::IRModule filed_one_before(const ir::IRModule& before, const ir::IRModule& scheduled) {
  ir::IRModule module = before;
  std::string last;
  for (const auto& [name, function] : scheduled) {
    if (function.same_as(before.find(name))) continue;
    module.set(last.empty() ? name : last, function);
    last = name;
  }
  return module;
}

Function scheduled(const Schedule& schedule) { return schedule.mod().find_as<PrimFunc>(schedule.func_working_on()); }

}  // namespace

const std::vector<Rule>& rules() {
  static const std::vector<Rule> rows{
      {"transform", transform},
      {"stencil", stencil},
      {"elementwise", elementwise},
      {"recurrence", recurrence},
      {"attention", attention},
      {"dot", dot},
      {"gemm", gemm},
      {"conv", conv},
      {"pool", pool},
      {"columns", columns},
      {"reduction", reduction},
      {"fallback", fallback},
  };
  return rows;
}

Schedule schedule_function(Schedule schedule, const target::Target& target, Decider& decider,
                           const ir::PassContext& context, const Acceptance& acceptance) {
  for (const Rule& rule : rules()) {
    Schedule attempt = schedule;
    NotingDecider noting(decider);
    const RuleContext rule_context{target, noting};
    Result<Outcome> outcome = support::catch_diagnostics([&]() { return rule.apply(attempt, rule_context); });
    if (outcome.ok() && !*outcome && acceptance) outcome = acceptance(scheduled(attempt));
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
                                        const ir::PassContext& context, const Acceptance& acceptance) {
  ir::PassContext for_decider = context;
  if (!decider.takes_any_order()) for_decider.threads = 1;
  std::atomic<bool> stopped{false};
  const ir::IRModule before = module;
  module = TRY(tir::on_each_function(
      std::move(module), for_decider, [&](const std::string& name, const Function& f, const ir::PassContext& own) {
        if (!root_of(*f) || f->attrs.get_or("tir.is_scheduled", false)) return f;
        if (own.cancelled && own.cancelled()) stopped = true;
        if (stopped) return f;
        Result<Schedule> schedule = Schedule::create(f, name);
        if (!schedule) {
          own.remark("schedule", name, schedule.diagnostics()[0].message);
          return f;
        }
        return scheduled(schedule_function(*std::move(schedule), target, decider, own, acceptance));
      }));
  return support::flip(schedule_functions_mixes_names) ? filed_one_before(before, module) : module;
}

}  // namespace lathe::schedule
