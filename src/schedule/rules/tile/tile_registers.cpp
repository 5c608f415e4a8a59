#include "schedule/rules/tile/tile_registers.h"

#include "ir/visit.h"
#include "schedule/analysis/linear.h"
#include "schedule/codes.h"
#include "schedule/rules/tile/tile_model.h"

namespace lathe::schedule {

namespace {

// The variable with which the block indexes that dimension of what lies in registers: its name, or empty.
std::string lane_variable(const Block& block, size_t dimension) {
  std::string name;
  const auto look = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    if ((buffer->scope != "register" && buffer->scope != "local") || dimension >= indices.size()) return;
    if (const auto* v = indices[dimension].as<VarNode>()) name = v->name;
  };
  post_order(block.body, [&](const NodeRef& n) {
    if (const auto* load = n.as<BufferLoad>()) look(load->buffer, load->indices);
    if (const auto* store = n.as<BufferStore>()) look(store->buffer, store->indices);
  });
  return name;
}

}  // namespace

Status finish_tile(Schedule& schedule, BlockRV block, LoopRV tile, size_t lane_dimension, int64_t lanes) {
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  const std::string lane_name = "ax_" + lane_variable(*TRY(schedule.get(block)), lane_dimension);
  const Id tile_id = TRY(schedule.get(tile))->id;
  std::vector<LoopRV> order;
  std::optional<LoopRV> lane;
  bool inside = false;
  for (const LoopRV& loop : loops) {
    const Ref<For> l = TRY(schedule.get(loop));
    if (inside && l->loop_var->name == lane_name)
      lane = loop;
    else if (inside)
      order.push_back(loop);
    inside = inside || l->id == tile_id;
  }
  if (lane) {
    const auto extent = as_int(TRY(schedule.get(*lane))->extent);
    LoopRV vector = *lane;
    if (extent && *extent > lanes) {
      const std::vector<LoopRV> cut = TRY(schedule.split(*lane, {Factor(), lanes}));
      order.push_back(cut[0]);
      vector = cut[1];
    }
    std::vector<LoopRV> all = order;
    all.push_back(vector);
    if (all.size() > 1) TRY(schedule.reorder(all));
    TRY(schedule.vectorize(vector));
  }
  for (const LoopRV& loop : order) TRY(schedule.unroll(loop));
  return support::success();
}

Result<std::optional<SumParts>> sum_in_parts(Schedule& schedule, BlockRV block, const std::vector<LoopRV>& sums,
                                             int64_t chain) {
  std::optional<SumParts> parts;
  const Ref<Block> node = TRY(schedule.get(block));
  const auto* store = node->body.as<BufferStore>();
  if (sums.empty() || !store || !store->value->dtype.is_floating()) return parts;
  std::vector<int64_t> extents;
  int64_t terms = 1;
  for (const LoopRV& loop : sums) {
    const auto extent = as_int(TRY(schedule.get(loop))->extent);
    if (!extent || *extent == 0) return parts;
    extents.push_back(*extent);
    terms = std::min(terms * std::min(*extent, 2 * chain), 2 * chain);
  }
  if (terms < 2 * chain) return parts;
  size_t cut = sums.size() - 1;
  int64_t inner = 1;
  while (cut > 0 && inner * extents[cut] <= chain) inner *= extents[cut--];
  int64_t step = largest_divisor(extents[cut], chain / inner);
  if (step * inner * 4 < chain) step = extents[cut];
  const auto first = extents.begin(), last = first + static_cast<ptrdiff_t>(cut);
  const bool is_one = step == extents[cut] && std::all_of(first, last, [](int64_t e) { return e == 1; });
  if (is_one) return parts;
  std::vector<LoopRV> outside(sums.begin(), sums.begin() + static_cast<ptrdiff_t>(cut));
  std::vector<int64_t> fused(first, last);
  if (step < extents[cut]) {
    outside.push_back(TRY(schedule.split(sums[cut], {Factor(), step}))[0]);
    fused.push_back(extents[cut] / step);
  }
  const LoopRV part = outside.size() > 1 ? TRY(schedule.fuse(outside)) : outside[0];
  parts = SumParts{TRY(schedule.rfactor(part, 0)), std::move(fused)};
  return parts;
}

Status write_out_steps(Schedule& schedule, std::vector<LoopRV>& sums, const TilePlan& plan) {
  if (plan.slides && !sums.empty()) return schedule.unroll(sums.back());
  for (size_t i = sums.size(); i-- > 0;) {
    const auto extent = as_int(TRY(schedule.get(sums[i]))->extent);
    if (extent == 1) continue;
    const int64_t count = extent ? largest_divisor(*extent, plan.steps) : 1;
    if (count == 1 || *extent < 8 * count) break;
    const std::vector<LoopRV> cut = TRY(schedule.split(sums[i], {Factor(), Factor(count)}));
    sums[i] = cut[0];
    return schedule.unroll(cut[1]);
  }
  return support::success();
}

namespace {

// The loops of a block inside `outer`: its sums, and the lanes, those that walk the last dimension of what it writes.
struct Inside {
  std::vector<LoopRV> sums, others, lanes;
};
Result<Inside> loops_inside(Schedule& schedule, BlockRV block, LoopRV outer) {
  const Ref<Block> node = TRY(schedule.get(block));
  const Id outer_id = TRY(schedule.get(outer))->id;
  const auto* store = node->body.as<BufferStore>();
  const std::vector<Work> list = works(schedule.function());
  const Work* work = find(list, node->name);
  // Of a number with digits, as channels in groups are, the last.
  const Linear last = linear(store->indices.back());
  const auto steps_by_one = [&](const Expr& e) {
    return std::any_of(last.terms.begin(), last.terms.end(),
                       [&](const Linear::Term& term) { return term.atom == e && term.coefficient == 1; });
  };
  Inside result;
  bool inside = false;
  for (const LoopRV& loop : TRY(schedule.get_loops(block))) {
    const Ref<For> l = TRY(schedule.get(loop));
    if (inside) {
      bool reduces = false, lanes = false;
      for (size_t i = 0; i < node->iter_vars.size(); ++i) {
        if (!uses_var(work->realize->iter_values[i], l->loop_var)) continue;
        reduces = reduces || node->iter_vars[i]->type == IterType::reduce;
        lanes = lanes || steps_by_one(node->iter_vars[i]->var);
      }
      (reduces ? result.sums : lanes ? result.lanes : result.others).push_back(loop);
    }
    inside = inside || l->id == outer_id;
  }
  return result;
}

// Lanes last and vectorised, everything else but the sums written out, the sums' start before them.
Status keep_in_registers(Schedule& schedule, BlockRV block, const Inside& loops, int64_t lanes, const TilePlan& plan) {
  std::vector<LoopRV> order = loops.sums, unrolled = loops.others;
  std::vector<LoopRV> vector = loops.lanes;
  if (vector.size() == 1 && as_int(TRY(schedule.get(vector[0]))->extent).value_or(0) > lanes)
    vector = TRY(schedule.split(vector[0], {Factor(), lanes}));
  if (vector.size() == 2) unrolled.insert(plan.waits_by_rows() ? unrolled.begin() : unrolled.end(), vector[0]);
  order.insert(order.end(), unrolled.begin(), unrolled.end());
  if (!vector.empty()) order.push_back(vector.back());
  if (order.size() > 1) TRY(schedule.reorder(order));
  if (!vector.empty()) TRY(schedule.vectorize(vector.back()));
  for (const LoopRV& loop : unrolled) TRY(schedule.unroll(loop));
  std::vector<LoopRV> sums = loops.sums;
  TRY(write_out_steps(schedule, sums, plan));
  if (!sums.empty()) TRY(schedule.decompose_reduction(block, sums[0]));
  return support::success();
}

// Into how many parts each of the sums inside a tile is taken at once: as many as save most cycles, if that is twice
// what it takes to add them up at the end.
Result<int64_t> parts_at_once(Schedule& schedule, const Inside& loops, int64_t lanes, const TilePlan& plan) {
  if (loops.sums.empty() || loops.lanes.empty() || plan.updates || plan.window || plan.slides || plan.own_bodies)
    return 1;
  const auto extent = [&](const LoopRV& loop) -> Result<int64_t> {
    return as_int(TRY(schedule.get(loop))->extent).value_or(0);
  };
  int64_t rows = 1, elements = 1, terms = 1;
  for (const LoopRV& loop : loops.others) rows *= TRY(extent(loop));
  for (const LoopRV& loop : loops.lanes) elements *= TRY(extent(loop));
  for (const LoopRV& loop : loops.sums) terms *= TRY(extent(loop));
  const int64_t innermost = TRY(extent(loops.sums.back()));
  const int64_t vectors = (elements + lanes - 1) / lanes, beside = vectors + 2;  // what is multiplied, and one to spare
  const int64_t chains = rows * vectors;
  int64_t best = 1;
  double most = 0;
  for (const int64_t parts : {2, 4}) {
    if (chains * parts / 2 >= plan.chains || chains * parts + beside > plan.registers || innermost % parts != 0) break;
    const double saved = cycles_of_step(rows, vectors, 1) - cycles_of_step(rows, vectors, parts);
    const double ending = static_cast<double>(chains * parts) / 2 + 4.0 * static_cast<double>(parts);
    const double gain = saved * static_cast<double>(terms) - 2 * ending;
    if (gain > most) best = parts, most = gain;
  }
  return best;
}

}  // namespace

Result<std::optional<BlockRV>> sum_side_by_side(Schedule& schedule, BlockRV block, LoopRV tile, int64_t lanes,
                                                const TilePlan& plan) {
  const Inside loops = TRY(loops_inside(schedule, block, tile));
  const int64_t count = TRY(parts_at_once(schedule, loops, lanes, plan));
  if (count == 1) return std::optional<BlockRV>();
  std::vector<LoopRV> order = loops.sums;
  const std::vector<LoopRV> cut = TRY(schedule.split(order.back(), {Factor(), Factor(count)}));
  order.back() = cut[0];
  order.insert(order.begin(), cut[1]);
  order.insert(order.end(), loops.others.begin(), loops.others.end());
  order.insert(order.end(), loops.lanes.begin(), loops.lanes.end());
  TRY(schedule.reorder(order));
  const BlockRV apart = TRY(schedule.rfactor(cut[1], 0));
  TRY(schedule.set_scope(apart, 0, "register"));
  const Inside adding = TRY(loops_inside(schedule, block, tile));
  TilePlan own = plan;
  own.steps = 1;
  TRY(keep_in_registers(schedule, block, adding, lanes, own));
  for (const LoopRV& part : adding.sums) TRY(schedule.unroll(part));
  own.steps = std::max<int64_t>(plan.steps / count, 1);
  TRY(keep_in_registers(schedule, apart, TRY(loops_inside(schedule, apart, tile)), lanes, own));
  return std::optional(apart);
}

Result<BlockRV> tile_of_parts(Schedule& schedule, BlockRV total, const SumParts& parts, LoopRV tile, int64_t lanes,
                              const TilePlan& plan) {
  const Inside adding = TRY(loops_inside(schedule, total, tile));
  if (adding.sums.size() != 1) return refuse(codes::not_inlinable, "the parts of a sum are not one loop");
  TilePlan one_by_one = plan;
  one_by_one.steps = 1;
  one_by_one.slides = false;
  TRY(keep_in_registers(schedule, total, adding, lanes, one_by_one));
  LoopRV part = adding.sums[0];
  if (plan.own_bodies && *plan.own_bodies < parts.extents.size()) {
    const std::vector<Factor> extents(parts.extents.begin(), parts.extents.end());
    const std::vector<LoopRV> loops = TRY(schedule.split(part, extents));
    TRY(schedule.unroll(loops[*plan.own_bodies]));
    part = loops.back();
  }
  TRY(schedule.compute_at(parts.block, part));
  TRY(schedule.set_scope(parts.block, 0, "register"));
  if (const auto block = TRY(sum_side_by_side(schedule, parts.block, part, lanes, plan))) return *block;
  TRY(keep_in_registers(schedule, parts.block, TRY(loops_inside(schedule, parts.block, part)), lanes, plan));
  return parts.block;
}

}  // namespace lathe::schedule
