// reduction: reductions over the last axis, alone or in groups that share their rows (softmax, layer normalisation).
// All blocks run row by row, rows in parallel; a reduction keeps vectors of partial results in registers and combines
// their lanes at the end of the row.
#include "schedule/rules/cut_reduction.h"
#include "schedule/rules/nest/rows.h"
#include "schedule/rules/tile/tile.h"

namespace lathe::schedule {

namespace {

// Rows that go through each step together: where the lanes of one are combined, which takes as long as some of its
// vectors, the next one's vectors have work. Worth it where there is much to compute in a row: as many as the innermost
// loop over rows divides into, up to four, where the nearest cache holds what is computed of them in a quarter.
int64_t rows_together(const std::vector<Work>& list, const RuleContext& context) {
  int64_t bytes = 0;
  std::optional<int64_t> rows;
  bool costly = false;
  for (const Work& work : list) {
    costly = costly || is_costly(work.block());
    const std::vector<const For*> over_rows = loops_of(work, IterType::spatial);
    const auto length = constant_product(loops_of(work, IterType::reduce));
    if (!constant_product(work.loops)) return 1;
    if (!work.reduces()) continue;
    if (over_rows.empty() || !length) return 1;
    rows = as_int(over_rows.back()->extent);
    bytes = std::max(bytes, *length * widest_bits(work.block()) / 8);
  }
  if (!rows || bytes == 0 || !costly) return 1;
  return largest_divisor(*rows, std::clamp<int64_t>(context.target.cache_bytes(1, 32 << 10) / 4 / bytes, 1, 4));
}

// Whether the block reads across what it writes, as a transposition does. What reduces its rows would gather them one
// element at a time, and each reduction again.
bool reads_across(const Work& work) {
  if (work.loops.empty()) return false;
  bool across = false;
  for (const Access& access : accesses(work.function->body)) {
    if (access.block != &work.block()) continue;
    const auto stride = stride_of(access, *work.loops.back());
    if (!stride || (access.writes && *stride != 1)) return false;
    across = across || (*stride != 0 && *stride != 1);
  }
  return across;
}

// Brings all blocks into the loops over rows, `together` rows at a time, and schedules each there. Where several rows
// go together, a block that cannot is a refusal. Gives whether there is work enough for threads.
Result<bool> by_rows(Schedule& schedule, const RuleContext& context, const std::vector<Work>& list, size_t rows,
                     int64_t together) {
  // The loops over rows become one only when all blocks are in them: quotients by an extent that is not known say
  // little about which part of a block a row needs.
  std::vector<LoopRV> outer;
  if (rows > 0) {
    const std::vector<LoopRV> loops = TRY(schedule.get_loops(TRY(handle(schedule, list.back()))));
    outer = {loops.begin(), loops.begin() + static_cast<ptrdiff_t>(rows)};
    if (together > 1) outer.back() = TRY(schedule.split(outer.back(), {Factor(), Factor(together)}))[0];
    const Work& anchor = list.back();
    for (size_t i = list.size() - 1; i-- > 0;)
      if (list[i].loops.size() < rows || list[i].loops[rows - 1] != anchor.loops[rows - 1])
        TRY(schedule.compute_at(TRY(schedule.get_block(list[i].block().name)), outer.back()));
    if (const auto again = computed_again(list, works(schedule.function())))
      return refuse(codes::not_inlinable, *again);
  }
  const int64_t total = work_for_threads(list);
  std::vector<std::string> names;
  for (const Work& work : list) names.push_back(work.block().name);
  TRY(schedule_rows(schedule, context, names, outer.size(), together));
  if (total >= parallel_work) try_parallel(schedule, outer);
  return total >= parallel_work;
}

}  // namespace

Result<Outcome> reduction(Schedule& schedule, const RuleContext& context) {
  if (const auto why = no_plain_reductions(works(schedule.function()))) return why;
  std::set<std::string> turned;
  TRY(inline_producers(schedule, [&](const Work& work) {
    const bool is_across = reads_across(work);
    if (is_across) turned.insert(work.block().name);
    return is_across || is_costly(work.block());
  }));
  std::vector<BlockRV> partial;
  for (const Work& work : works(schedule.function())) {
    if (!work.reduces()) continue;
    const BlockRV block = TRY(handle(schedule, work));
    const auto cut = TRY(cut_reduction(schedule, block, context.target.lanes(widest_bits(work.block()))));
    if (cut) partial.push_back(*cut);
  }

  std::vector<Work> list = works(schedule.function());
  std::erase_if(list, [&](const Work& work) { return turned.count(work.block().name) > 0; });
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
  if (rows > 0 && TRY(schedule.get_loops(TRY(handle(schedule, anchor)))).size() < rows)
    return Outcome(fmt::format("block '{}' has fewer loops than rows", anchor.block().name));
  const int64_t most = rows > 0 && list.size() > 1 && partial.empty() ? rows_together(list, context) : 1;
  std::vector<int64_t> choices{1};
  if (most > 1) choices.push_back(most);
  const int64_t together = TRY(schedule.get(TRY(decide(schedule, context, "reduction", "rows", choices, most))));
  Schedule attempt = schedule;
  if (together > 1 && by_rows(attempt, context, list, rows, together)) {
    schedule = std::move(attempt);
  } else {
    const bool enough = TRY(by_rows(schedule, context, list, rows, 1));
    if (enough && rows == 0)  // pieces of one row
      for (const BlockRV& block : partial) try_parallel(schedule, {TRY(schedule.get_loops(block))[0]});
  }
  for (const std::string& name : turned) TRY(vectorize_elementwise(schedule, context, TRY(schedule.get_block(name))));
  return Outcome();
}

}  // namespace lathe::schedule
