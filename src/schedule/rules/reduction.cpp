// reduction: reductions over the last axis, alone or in groups that share their rows (softmax, layer normalisation).
// All blocks run row by row, rows in parallel; a reduction keeps vectors of partial results in registers and combines
// their lanes at the end of the row.
#include "ir/visit.h"
#include "schedule/rules/rows.h"

namespace lathe::schedule {

Result<Outcome> reduction(Schedule& schedule, const RuleContext& context) {
  const std::vector<Work> before = works(schedule.function());
  bool any = false;
  for (const Work& work : before) {
    if (has_effects(work.block())) return Outcome(fmt::format("block '{}' has effects", work.block().name));
    any = any || work.reduces();
    if (constant_product(work.loops) == 0) return Outcome("there is nothing to compute");
    if (work.reduces() && !is_reduction(work.block()))
      return Outcome(fmt::format("block '{}' is not a plain reduction", work.block().name));
  }
  if (!any) return Outcome("no block is a reduction");
  TRY(inline_producers(schedule, [](const Work& work) { return is_costly(work.block()); }));

  const std::vector<Work> list = works(schedule.function());
  size_t rows = std::numeric_limits<size_t>::max();
  bool is_one_row = true;
  for (const Work& work : list) {
    if (!work.reduces()) continue;
    const std::vector<const For*> over_rows = loops_of(work, IterType::spatial);
    rows = std::min(rows, over_rows.size());
    is_one_row = is_one_row && constant_product(over_rows) == 1;
  }
  // A single row needs no loop that blocks are brought into.
  if (is_one_row) rows = 0;
  const Work& anchor = list.back();
  for (const Work& work : list)
    if (&work != &anchor && work.is_output)
      return Outcome(fmt::format("block '{}' also writes an output", work.block().name));
  // The loops over rows become one only when all blocks are in them: quotients by an extent that is not known say
  // little about which part of a block a row needs.
  std::vector<LoopRV> outer;
  std::optional<LoopRV> row;
  if (rows > 0) {
    const std::vector<LoopRV> loops = TRY(schedule.get_loops(TRY(handle(schedule, anchor))));
    if (loops.size() < rows) return Outcome(fmt::format("block '{}' has fewer loops than rows", anchor.block().name));
    outer = {loops.begin(), loops.begin() + static_cast<ptrdiff_t>(rows)};
    row = outer.back();
    for (size_t i = list.size() - 1; i-- > 0;)
      TRY(schedule.compute_at(TRY(schedule.get_block(list[i].block().name)), *row));
  }
  int64_t total = 0;
  std::vector<std::string> names;
  for (const Work& work : list) {
    names.push_back(work.block().name);
    const auto work_of_block = constant_product(work.loops);
    total += work_of_block ? *work_of_block * (is_costly(work.block()) ? 8 : 1) : 8 * parallel_work;
  }
  TRY(schedule_rows(schedule, context, names, outer.size()));
  if (total >= parallel_work) try_parallel(schedule, outer);
  return Outcome();
}

}  // namespace lathe::schedule
