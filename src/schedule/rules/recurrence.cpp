// recurrence: blocks inside a loop over steps that follow each other (a scan axis). The steps stay in order; inside a
// step each product gets a register tile, and what is computed element by element runs in vectors.
#include "schedule/codes.h"
#include "schedule/rules/tile/contraction.h"

namespace lathe::schedule {

namespace {

// The variables of the loops that scan axes are bound to.
std::vector<Var> steps_of(const std::vector<Work>& list) {
  std::vector<Var> steps;
  for (const Work& work : list)
    for (size_t v = 0; v < work.block().iter_vars.size(); ++v) {
      if (work.block().iter_vars[v]->type != IterType::scan) continue;
      for (const For* loop : work.loops)
        if (uses_var(work.realize->iter_values[v], loop->loop_var)) steps.push_back(loop->loop_var);
    }
  return steps;
}

// How many of the block's loops, from the outermost, are loops over steps or around one.
size_t steps_around(const Work& work, const std::vector<Var>& steps) {
  size_t count = 0;
  for (size_t i = 0; i < work.loops.size(); ++i)
    if (std::find(steps.begin(), steps.end(), work.loops[i]->loop_var) != steps.end()) count = i + 1;
  return count;
}

Status tile_product(Schedule& schedule, const RuleContext& context, const Work& work, size_t steps) {
  const Contraction found = TRY(contraction(schedule.function(), work, steps));
  if (found.windows) return refuse(codes::not_inlinable, name_of(work.block()) + " reads windows");
  TilePlan plan = TRY(plan_tile(schedule, context, "recurrence", found));
  plan.outer = steps;
  return register_tile(schedule, context, plan, "");
}

}  // namespace

Result<Outcome> recurrence(Schedule& schedule, const RuleContext& context) {
  const std::vector<Work> list = works(schedule.function());
  for (const Work& work : list)
    if (has_effects(work.block())) return Outcome(fmt::format("block '{}' has effects", work.block().name));
  if (steps_of(list).empty()) return Outcome("no block has a scan axis");
  for (const Work& planned : list) {
    // Earlier blocks of the list moved meanwhile; the loops are those of now.
    const std::vector<Work> now = works(schedule.function());
    const Work* work = find(now, planned.block().name);
    if (!work || work->loops.empty() || constant_product(work->loops) == 0) continue;
    const size_t steps = steps_around(*work, steps_of(now));
    Schedule attempt = schedule;
    Status done = support::success();
    if (steps == 0)
      done = vectorize_elementwise(attempt, context, TRY(handle(attempt, *work)));
    else if (work->reduces())
      done = tile_product(attempt, context, *work, steps);
    else if (walks_rows(attempt.function(), *work))
      done = vectorize_innermost(attempt, context, *work);
    if (done.ok()) schedule = std::move(attempt);
  }
  return Outcome();
}

}  // namespace lathe::schedule
