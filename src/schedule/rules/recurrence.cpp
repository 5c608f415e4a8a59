// recurrence: blocks inside a loop over steps that follow each other (a scan axis). The steps stay in order; inside a
// step each product gets a register tile, and what is computed element by element runs in vectors. Where a step is one
// such block (cumulative sums), what is independent goes around it: a few vectors, or a few rows, take their steps
// together, since each waits for the one before.
#include "schedule/codes.h"
#include "schedule/rules/tile/contraction.h"
#include "schedule/rules/tile/tile_model.h"

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

Status tile_product(Schedule& schedule, const RuleContext& context, const std::string& block, size_t outer) {
  const std::vector<Work> now = works(schedule.function());
  const Contraction found = TRY(contraction(schedule.function(), *find(now, block), outer));
  if (found.windows) return refuse(codes::not_inlinable, fmt::format("block '{}' reads windows", block));
  TilePlan plan = TRY(plan_tile(schedule, context, "recurrence", found));
  plan.outer = outer;
  return register_tile(schedule, context, plan, "");
}

// The product of one step. Of rows whose number is not known those that fill no tile get nests of their own, by a few
// and one by one, with tiles as wide as so few rows need: often there is one row alone.
Status tile_products(Schedule& schedule, const RuleContext& context, const Work& work, size_t steps) {
  constexpr int64_t few = 4;
  const Contraction found = TRY(contraction(schedule.function(), work, steps));
  if (found.row != steps || as_int(work.loops[steps]->extent))
    return tile_product(schedule, context, work.block().name, steps);
  const auto block_in = [&](LoopRV loop) -> Result<std::string> {
    return TRY(schedule.get(TRY(schedule.get_child_blocks(loop)).at(0)))->name;
  };
  const int64_t most = tiles_by_halves(tile_shape(2, 2, found, std::nullopt, context.target).rows);
  LoopRV left = TRY(schedule.get_loops(TRY(handle(schedule, work)))).at(steps);
  std::vector<std::string> blocks{work.block().name};
  for (const int64_t rows : {most, few}) {
    if (rows > most || (rows == few && most < 2 * few)) continue;
    const std::vector<LoopRV> cut = TRY(schedule.peel(left, rows));
    if (cut.size() < 2) break;
    left = cut[1];
    blocks.push_back(TRY(block_in(left)));
    if (blocks.size() > 2) TRY(schedule.split(cut[0], {Factor(), Factor(rows)}));
  }
  for (size_t part = 0; part < blocks.size(); ++part)
    TRY(tile_product(schedule, context, blocks[part], part == 0 ? steps : steps + 1));
  return support::success();
}

// The loops around the block are one nest, and the innermost over steps has others around or inside it.
bool stands_alone(const Work& work, size_t steps) {
  for (size_t i = 0; i + 1 < work.loops.size(); ++i)
    if (work.loops[i]->body.get() != work.loops[i + 1]) return false;
  return !work.reduces() && steps > 0 && work.loops.size() > 1;
}

// [around…, steps, inside…] becomes [around…, parts of rows, steps, groups, vectors] where rows are walked inside, else
// [around…, groups of rows, steps, inside…, rows].
Status carry(Schedule& schedule, const RuleContext& context, const Work& work, size_t steps) {
  constexpr int64_t vectors = 4, rows = 8;
  const BlockRV block = TRY(handle(schedule, work));
  std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  const int64_t lanes = context.target.lanes(widest_bits(work));
  const size_t step = steps - 1;
  const auto width = as_int(work.loops.back()->extent);
  if (steps < loops.size() && walks_rows(schedule.function(), work) && width.value_or(lanes) >= lanes) {
    const int64_t together = width && *width < vectors * lanes ? lanes : vectors * lanes;
    // What a step reads of the one before is on its way through memory as long as some vectors take: several groups
    // take each step, where there are enough for all threads.
    constexpr int64_t most_groups = 4;
    const int64_t count = width ? (*width + together - 1) / together : 1;
    const int64_t groups = count >= most_groups * context.target.cores ? largest_divisor(count, most_groups) : 1;
    const std::vector<LoopRV> cut = TRY(schedule.split(loops.back(), {Factor(), groups, together}));
    TRY(schedule.reorder({cut[0], loops[step]}));
    return schedule.vectorize(cut[2]);
  }
  if (step == 0) return support::success();
  const auto count = as_int(work.loops[step - 1]->extent);
  if (count && *count < rows) return support::success();
  const std::vector<LoopRV> cut = TRY(schedule.split(loops[step - 1], {Factor(), rows}));
  std::vector<LoopRV> order(loops.begin() + static_cast<ptrdiff_t>(step), loops.end());
  order.push_back(cut[1]);
  return schedule.reorder(order);
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
      done = tile_products(attempt, context, *work, steps);
    else if (stands_alone(*work, steps)) {
      done = carry(attempt, context, *work, steps);
      if (done.ok()) done = parallelize_outer(attempt, TRY(handle(attempt, *work)));
    } else if (walks_rows(attempt.function(), *work))
      done = vectorize_innermost(attempt, context, *work);
    if (done.ok()) schedule = std::move(attempt);
  }
  return Outcome();
}

}  // namespace lathe::schedule
