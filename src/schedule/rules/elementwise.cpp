// elementwise: a function without reductions. Chains become one block each output; its contiguous loops become one, cut
// into vectors; the outermost runs in parallel where there is enough to do.
#include "schedule/codes.h"
#include "schedule/rules/nest/transposed.h"
#include "schedule/rules/nest/work.h"
#include "support/mutation.h"

namespace lathe::schedule {

namespace {

// The loops over rows of several blocks as one, which runs their parts of a row one after the other. Refused where they
// have no such loops, or other ones.
Result<LoopRV> one_row_at_a_time(Schedule& schedule, const std::vector<BlockRV>& parts) {
  std::vector<LoopRV> rows;
  for (const BlockRV& part : parts) {
    std::vector<LoopRV> around = TRY(schedule.get_loops(part));
    around.pop_back();
    if (around.empty()) return refuse(codes::not_nested, "there is one row");
    rows.push_back(around.size() > 1 ? TRY(schedule.fuse(around)) : around[0]);
  }
  return rows.size() > 1 ? schedule.merge(rows) : Result<LoopRV>(rows[0]);
}

// Each part of a row by itself, the middle in vectors; the parts of one row follow one another, unless rows are so few
// that threads share one. Refused where the middle is no row either.
Status schedule_parts_of_rows(Schedule& schedule, const RuleContext& context, BlockRV middle) {
  std::vector<BlockRV> parts = TRY(schedule.split_padding(middle));
  parts.push_back(middle);
  const std::vector<Work> list = works(schedule.function());
  const std::string name = TRY(schedule.get(middle))->name;
  const Work& work = *find(list, name);
  const auto length = as_int(work.loops.back()->extent);
  const int64_t lanes = context.target.lanes(widest_bits(work));
  if (!walks_rows(schedule.function(), work) || (length && *length < lanes))
    return refuse(codes::not_inlinable, fmt::format("the middle of the rows of block '{}' is no row", name));
  const bool enough = are_enough(constant_product(work.loops), work_of_instance(work.block()));
  const auto count = constant_product({work.loops.begin(), work.loops.end() - 1});
  Schedule attempt = schedule;
  const auto rows = one_row_at_a_time(attempt, parts);
  if (!rows || (enough && count && *count < 2 * context.target.cores)) {
    for (const BlockRV& part : parts) TRY(vectorize_elementwise(schedule, context, part));
    return support::success();
  }
  schedule = std::move(attempt);
  if (enough) try_parallel(schedule, {*rows});
  return vectorize_by(schedule, TRY(schedule.get_loops(middle)).back(), lanes, lanes);
}

// Whether what a block that gathers writes is wanted several times: what is computed with it would come one by one,
// too.
bool gathers_for_many(const Work& work) {
  const std::vector<Buffer> written = buffers_written(work.realize);
  const auto own = constant_product(work.loops);
  if (written.size() != 1 || !own || !gathers(work)) return false;
  const std::vector<Work> all = works(*work.function);
  return std::any_of(all.begin(), all.end(), [&](const Work& other) {
    const std::vector<Buffer> read = buffers_read(other.block().body);
    return std::find(read.begin(), read.end(), written[0]) != read.end() &&
           constant_product(other.loops).value_or(0) > *own;
  });
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
  TRY(inline_producers(schedule, &gathers_for_many));
  for (const Work& work : works(schedule.function())) {
    std::vector<BlockRV> parts{TRY(handle(schedule, work))};
    if (has_other_ends(work)) {
      Schedule attempt = schedule;
      if (schedule_parts_of_rows(attempt, context, parts[0])) {
        schedule = std::move(attempt);
        continue;
      }
    }
    // Padding around what is turned: squares need no condition.
    const int64_t lanes = context.target.lanes(widest_bits(work.block()));
    if (is_conditional(work.block()) && crossing_loop(*work.function, work, lanes))
      if (const auto sides = schedule.split_padding(parts[0])) parts.insert(parts.end(), sides->begin(), sides->end());
    for (const BlockRV& part : parts) TRY(vectorize_elementwise(schedule, context, part));
  }
  return Outcome();
}

}  // namespace lathe::schedule
