// dot: sums of products whose terms lie side by side in both tensors, for few results of a row: convolutions to some
// channels of images whose channels are last. Vectors run along the terms, so that few results fill them.
#include "schedule/codes.h"
#include "schedule/rules/nest/rows.h"
#include "schedule/rules/rules.h"
#include "schedule/rules/tile/contraction.h"
#include "schedule/rules/tile/tile_cut.h"
#include "schedule/rules/tile/tile_model.h"

namespace lathe::schedule {

namespace {

constexpr int64_t most_results = 8, most_steps = 1024;

// What the loops do, by position.
struct Dot {
  std::string block;
  std::vector<size_t> outer;    // spatial, the others
  size_t row = 0;               // the innermost of those that walk the first tensor alone
  std::vector<size_t> reduce;   // outermost first, the others
  size_t terms = 0;             // sums along what is contiguous in both tensors
  std::vector<size_t> results;  // walk the second tensor alone
  int64_t count = 1;            // of results
  int64_t steps = 1;            // terms of a sum
  int64_t lanes = 1;
};

// Lanes that divide so many terms, half a vector at least; 0 where none do.
int64_t lanes_for(int64_t terms, int64_t full) {
  for (const int64_t lanes : {full, full / 2})
    if (lanes >= 4 && terms >= lanes && terms % lanes == 0) return lanes;
  return 0;
}

Result<Dot> dot_of(const PrimFunc& function, const Work& work, const target::Target& target) {
  const auto declined = [&](std::string_view why) {
    return refuse(codes::not_inlinable, fmt::format("{} {}", name_of(work.block()), why));
  };
  const SumOfProducts sum = TRY(sum_of_products(function, work));
  if (!work.block().init) return declined("adds to what its output holds");
  Dot found;
  found.block = work.block().name;
  std::optional<size_t> terms, row;
  for (const size_t i : sum.reduce) {
    const auto extent = as_int(work.loops[i]->extent);
    if (!extent) return declined("sums over a length that is not known");
    found.steps *= *extent;
    if (terms || stride_of(sum.first, *work.loops[i]) != 1 || stride_of(sum.second, *work.loops[i]) != 1) {
      found.reduce.push_back(i);
      continue;
    }
    terms = i;
    found.lanes = lanes_for(*extent, target.lanes(widest_bits(work.block())));
  }
  if (!terms) return declined("has no terms that lie side by side in both tensors");
  if (found.lanes == 0) return declined("has terms that fill no vectors");
  if (found.steps / found.lanes > most_steps) return declined("sums too much in one chain");
  found.terms = *terms;
  for (const size_t i : sum.spatial) {
    const bool in_first = moves_with(sum.first, *work.loops[i]), in_second = moves_with(sum.second, *work.loops[i]);
    if (in_second && !in_first) {
      found.results.push_back(i);
      found.count *= as_int(work.loops[i]->extent).value_or(most_results + 1);
      if (found.count > most_results) return declined("has results enough to fill vectors");
      continue;
    }
    if (in_first && !in_second && !is_int(work.loops[i]->extent, 1)) {
      if (row) found.outer.push_back(*row);
      row = i;
    } else {
      found.outer.push_back(i);
    }
  }
  if (!row) return declined("has no rows that share the second tensor");
  if (found.count == 0) return declined("has no results");
  if (found.count == 1 && found.reduce.empty()) return declined("is a matrix times a vector");
  found.row = *row;
  return found;
}

// Some rows, each with its results, as sums in registers: vectors of terms go along both tensors, and their lanes are
// added at the end. An epilogue takes them from there.
Status sum_rows(Schedule& schedule, BlockRV block, LoopRV loop, int64_t rows, const Dot& found,
                const std::optional<BlockRV>& epilogue) {
  const std::vector<LoopRV> cut = TRY(schedule.split(loop, {Factor(), Factor(rows)}));
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  const size_t first = found.outer.size() + 2, sums = found.reduce.size() + 1;
  const auto at = [&](size_t i) { return loops.begin() + static_cast<ptrdiff_t>(first + i); };
  // Outer loops, rows, one row | sums, results, lanes
  std::vector<LoopRV> order(at(0), at(sums));
  order.push_back(cut[1]);
  order.insert(order.end(), at(sums), loops.end());
  TRY(schedule.reorder(order));
  const BlockRV partial = TRY(schedule.rfactor(order.back(), -1));
  TRY(schedule.set_scope(partial, 0, "register"));
  if (epilogue) {
    TRY(schedule.reverse_compute_at(*epilogue, cut[0]));
    TRY(schedule.set_scope(block, 0, "local"));
  }
  TRY(add_lanes(schedule, block, found.lanes));
  TRY(schedule.vectorize(order.back()));
  for (size_t i = sums; i + 1 < order.size(); ++i) TRY(schedule.unroll(order[i]));
  TRY(schedule.decompose_reduction(partial, order.front()));
  TRY(schedule.decompose_reduction(block, TRY(schedule.get_loops(block)).back()));
  for (const BlockRV& each : epilogue ? std::vector{block, *epilogue} : std::vector{block}) {
    const std::vector<LoopRV> own = TRY(schedule.get_loops(each));
    for (size_t i = found.outer.size() + 1; i < own.size(); ++i)
      if (TRY(schedule.get(own[i]))->kind == ForKind::serial) TRY(schedule.unroll(own[i]));
  }
  return support::success();
}

Status schedule_dot(Schedule& schedule, const Dot& found, int64_t rows, const std::string& epilogue) {
  const BlockRV block = TRY(schedule.get_block(found.block));
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  const std::vector<LoopRV> lanes = TRY(schedule.split(loops.at(found.terms), {Factor(), Factor(found.lanes)}));
  std::vector<LoopRV> order;
  for (const size_t i : found.outer) order.push_back(loops.at(i));
  order.push_back(loops.at(found.row));
  for (const size_t i : found.reduce) order.push_back(loops.at(i));
  order.push_back(lanes[0]);
  for (const size_t i : found.results) order.push_back(loops.at(i));
  order.push_back(lanes[1]);
  TRY(schedule.reorder(order));
  TilePlan plan;
  plan.rows = rows;
  const std::vector<Part> parts = TRY(axis_parts(schedule, block, loops.at(found.row), {TileAxis::rows}, plan));
  if (parts.size() > 1 && !epilogue.empty())
    return refuse(codes::not_inlinable, "several kinds of tiles have no one epilogue");
  std::optional<BlockRV> behind;
  if (!epilogue.empty()) behind = TRY(schedule.get_block(epilogue));
  for (const Part& part : parts) TRY(sum_rows(schedule, part.block, part.loop, part.size, found, behind));
  for (const Part& part : parts) TRY(parallelize_outer(schedule, part.block, found.steps / found.lanes));
  return support::success();
}

}  // namespace

Result<Outcome> dot(Schedule& schedule, const RuleContext& context) {
  std::string why;
  const std::vector<Work> before = works(schedule.function());
  const Work* reduction = only_reduction(before, why);
  if (!reduction) return Outcome(why);
  const std::string name = reduction->block().name;
  const Surroundings around = TRY(inline_around(schedule, name, &is_read_often));
  const std::vector<Work> list = works(schedule.function());
  const Work& work = *find(list, name);
  const auto found = dot_of(schedule.function(), work, context.target);
  if (!found) return Outcome(found.diagnostics()[0].message);

  // Sums of all rows and results in registers, the second tensor's vectors beside them, one of the first's, one to
  // spare. Eight sums hide the latency of an addition.
  const auto height = as_int(work.loops[found->row]->extent);
  const int64_t room = context.target.vector_registers - found->count - 2;
  const int64_t most = std::clamp<int64_t>(room / found->count, 1, 8);
  const int64_t preferred = height ? equal_tiles(height, most) : tiles_by_halves(most);
  const int64_t rows = TRY(schedule.get(TRY(decide(schedule, context, "dot", "rows", up_to(most, height), preferred))));
  Schedule attempt = schedule;
  const bool has_epilogue = !around.epilogue.empty();
  // What takes tens of cycles goes in vectors, by itself.
  const bool joins = has_epilogue && !is_costly(find(list, around.epilogue)->block());
  if (joins && schedule_dot(attempt, *found, rows, around.epilogue)) {
    schedule = std::move(attempt);
  } else {
    TRY(schedule_dot(schedule, *found, rows, ""));
    if (has_epilogue) TRY(vectorize_elementwise(schedule, context, TRY(schedule.get_block(around.epilogue))));
  }
  for (const std::vector<std::string>* others : {&around.before, &around.behind})
    for (const std::string& other : *others)
      TRY(vectorize_elementwise(schedule, context, TRY(schedule.get_block(other))));
  return Outcome();
}

}  // namespace lathe::schedule
