#include "schedule/rules/rules.h"

#include "schedule/codes.h"
#include "support/mutation.h"
#include "support/parallel.h"

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

namespace {

// A function to schedule, then scheduled; null where it stays as it is.
struct Piece {
  std::string name;
  Function function;
  std::vector<ir::Remark> remarks;
};

void schedule_piece(Piece& piece, const target::Target& target, Decider& decider, const ir::PassContext& context) {
  ir::PassContext own = context;
  if (own.on_remark) own.on_remark = [&](ir::Remark remark) { piece.remarks.push_back(std::move(remark)); };
  Result<Schedule> schedule = Schedule::create(piece.function, piece.name);
  piece.function = {};
  if (!schedule)
    own.remark("schedule", piece.name, schedule.diagnostics()[0].message);
  else
    piece.function = schedule_function(*std::move(schedule), target, decider, own).mod().find_as<PrimFunc>(piece.name);
}

}  // namespace

Result<ir::IRModule> schedule_functions(ir::IRModule module, const target::Target& target, Decider& decider,
                                        const ir::PassContext& context) {
  std::vector<Piece> pieces;
  for (const auto& [name, base] : module.functions()) {
    const auto* function = base.as<PrimFunc>();
    if (!function || !root_of(*function) || function->attrs.get_or("tir.is_scheduled", false)) continue;
    pieces.push_back({name, Function(function), {}});
  }
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> stopped{false};
  support::parallel_for(pieces.size(), decider.takes_any_order() ? context.threads : 1, [&](size_t i) {
    // Only the thread that called asks: the answer may come from Python.
    if (std::this_thread::get_id() == caller && context.cancelled && context.cancelled()) stopped = true;
    if (stopped)
      pieces[i].function = {};
    else
      schedule_piece(pieces[i], target, decider, context);
  });
  std::string last;
  for (Piece& piece : pieces) {
    for (ir::Remark& remark : piece.remarks) context.on_remark(std::move(remark));
    if (!piece.function) continue;
    module.set(support::flip(schedule_functions_mixes_names) && !last.empty() ? last : piece.name, piece.function);
    last = piece.name;
  }
  return module;
}

}  // namespace lathe::schedule
