#include "ir/visit.h"
#include "schedule/analysis/dependence.h"
#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"
#include "tir/analysis/zero_border.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(rfactor_wrong_identity, "schedule_test", "rfactor: partial results start at one");

namespace {

// C[i] = combine(C[i], value): an operation that may be regrouped and reordered.
struct Combination {
  const BufferStore* store = nullptr;
  Expr value;
  std::function<Expr(Expr, Expr)> combine;
  Expr identity;
};

// What no value of the type is above (or below).
Expr extreme(DType dtype, bool largest) {
  if (dtype.is_ieee_float() || dtype.is_bfloat16())
    return constant(dtype, (largest ? 1 : -1) * std::numeric_limits<double>::infinity());
  return largest ? max_value(dtype) : min_value(dtype);
}

std::optional<Combination> combination(const Block& block) {
  Combination found;
  found.store = block.body.as<BufferStore>();
  const auto* init = block.init ? block.init.as<BufferStore>() : nullptr;
  if (!found.store || (block.init && !init) || found.store->predicate) return std::nullopt;
  const DType dtype = found.store->value->dtype;
  const auto is_own = [&](const Expr& e) {
    const auto* load = e.as<BufferLoad>();
    return load && load->buffer == found.store->buffer;
  };
  const auto take = [&](const Expr& a, const Expr& b) {
    if (is_own(a) == is_own(b)) return false;
    found.value = is_own(a) ? b : a;
    return true;
  };
  const Expr& value = found.store->value;
  bool matched = false;
  if (const auto* sum = value.as<Add>()) {
    matched = take(sum->a, sum->b);
    found.combine = [](Expr a, Expr b) { return a + b; };
    found.identity = constant(dtype, support::flip(rfactor_wrong_identity) ? 1 : 0);
  } else if (const auto* product = value.as<Mul>()) {
    matched = take(product->a, product->b);
    found.combine = [](Expr a, Expr b) { return a * b; };
    found.identity = constant(dtype, 1);
  } else if (const auto* larger = value.as<Max>()) {
    matched = take(larger->a, larger->b);
    found.combine = [](Expr a, Expr b) { return max(std::move(a), std::move(b)); };
    found.identity = init ? init->value : extreme(dtype, false);
  } else if (const auto* smaller = value.as<Min>()) {
    matched = take(smaller->a, smaller->b);
    found.combine = [](Expr a, Expr b) { return min(std::move(a), std::move(b)); };
    found.identity = init ? init->value : extreme(dtype, true);
  } else if (const auto* chosen = value.as<Select>()) {
    // The larger, where a NaN is passed over: the result so far is never one.
    const auto* more = chosen->condition.as<GT>();
    matched = more && is_own(chosen->false_value) && is_own(more->b) && !is_own(chosen->true_value) &&
              structural_equal(more->a, chosen->true_value);
    found.value = chosen->true_value;
    found.combine = [](Expr a, Expr b) { return select(gt(b, a), b, a); };
    found.identity = init ? init->value : Expr();
    if (const auto start = found.identity ? as_float(found.identity) : std::nullopt; !start || std::isnan(*start))
      matched = false;
  }
  if (!matched) return std::nullopt;
  // The identity of max and min is the block's own start where it has one, the same for every element.
  return as_int(found.identity) || as_float(found.identity) ? std::optional(found) : std::nullopt;
}

IterVar fresh_iter(const IterVar& iter, VarMap& map) {
  const Var v = var(iter->var->name);
  map[iter->var] = v;
  return with(*iter, [&](IterVarNode& copy) { copy.var = v; });
}

Ref<Block> make_block(std::vector<IterVar> iters, std::string name, Stmt init, Stmt body, Id id) {
  return with_regions(make<Block>(std::move(iters), std::vector<Buffer>{}, std::vector<MatchBufferRegion>{},
                                  std::vector<BufferRegion>{}, std::vector<BufferRegion>{}, std::move(name),
                                  std::move(init), std::move(body), Attributes(), id));
}

// Whether a reduce axis of the block may have no values at all.
bool may_be_empty(const std::vector<IterVar>& iters) {
  arith::Analyzer analyzer;
  return std::any_of(iters.begin(), iters.end(), [&](const IterVar& iter) {
    return iter->type == IterType::reduce && !analyzer.can_prove(iter->dom.extent >= 1);
  });
}

// A block that stores `start` for every value of the spatial variables of `block` where the predicate holds, in those
// loops of `nest` that give them their values.
Stmt nest_of_start(const Block& block, const Stmt& start, const std::vector<Expr>& values, const Expr& predicate,
                   const std::vector<const For*>& nest, Id& next) {
  VarMap own, loops;
  std::vector<const For*> kept;
  std::vector<Var> vars;
  for (const For* l : nest) {
    bool used = false;
    for (size_t i = 0; i < block.iter_vars.size(); ++i)
      used = used || (block.iter_vars[i]->type == IterType::spatial && uses_var(values[i], l->loop_var));
    if (!used) continue;
    kept.push_back(l);
    vars.push_back(var(l->loop_var->name));
    loops[l->loop_var] = is_int(l->min, 0) ? Expr(vars.back()) : vars.back() + l->min;
  }
  std::vector<IterVar> iters;
  std::vector<Expr> own_values;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    if (block.iter_vars[i]->type != IterType::spatial) continue;
    iters.push_back(fresh_iter(block.iter_vars[i], own));
    own_values.push_back(substitute(values[i], loops));
  }
  const Id id = next++;
  Stmt made = realize(std::move(own_values), substitute(predicate, loops),
                      make_block(std::move(iters), block.name + "_start", Stmt(), substitute(start, own), id));
  for (size_t i = kept.size(); i-- > 0;) made = loop_over(vars[i], kept[i]->extent, made, next++);
  return made;
}

}  // namespace

Result<Edit> rfactor(const Program& program, Id loop_id, int64_t factor_axis) {
  const Path to_loop = TRY(serial_loop(program, loop_id, "rfactor"));
  const For& loop = *to_loop.back().as<For>();
  const auto problem = [&](std::string why) {
    return refuse(codes::dependence, fmt::format("cannot rfactor {}: {}", name_of(loop), why));
  };
  const std::vector<Ref<BlockRealize>> blocks = outer_blocks(loop.body);
  if (blocks.size() != 1) return problem(fmt::format("it holds {} blocks, not one", blocks.size()));
  const Path path = path_to(program.function->body, blocks[0]->block->id);
  const auto& realized = *path.back().as<BlockRealize>();
  const Ref<Block> block = realized.block;
  if (program.proves && !is_reduction(*block)) return problem(fmt::format("{} is no reduction", name_of(*block)));
  auto starts = block->init ? runs_init(realized, loops_above(path)) : false;
  if (!program.proves) starts = starts.value_or(true);
  if (!starts) return problem(fmt::format("could not tell whether the init of {} runs here", name_of(*block)));
  const auto found = combination(*block);
  if (!found)
    return problem(fmt::format("how {} combines values is not a sum, product, minimum or maximum", name_of(*block)));
  const Buffer output = found->store->buffer;
  const int64_t rank = static_cast<int64_t>(output->shape.size());
  if (factor_axis < -rank - 1 || factor_axis > rank)
    return refuse(codes::bad_argument, fmt::format("cannot rfactor {}: factor_axis {} is not within [{}, {}]",
                                                   name_of(loop), factor_axis, -rank - 1, rank));
  const auto axis = static_cast<size_t>(factor_axis < 0 ? factor_axis + rank + 1 : factor_axis);

  // The nest from its outermost reduce loop down, each loop the only statement of the one above.
  const auto used_by = [&](const For* l, IterType type) {
    for (size_t i = 0; i < block->iter_vars.size(); ++i)
      if ((block->iter_vars[i]->type == type) && uses_var(realized.iter_values[i], l->loop_var)) return true;
    return false;
  };
  std::vector<const For*> nest;
  for (const For* l : loops_above(path)) {
    const bool reduces = used_by(l, IterType::reduce);
    if (reduces && used_by(l, IterType::spatial))
      return problem(fmt::format("{} drives both spatial and reduce axes of {}", name_of(*l), name_of(*block)));
    if (nest.empty() && !reduces) continue;
    if (!nest.empty() && nest.back()->body.get() != l)
      return problem(fmt::format("{} is not the only statement in {}", name_of(*l), name_of(*nest.back())));
    nest.push_back(l);
  }
  if (program.proves)
    if (const Conflict conflict = instances_that_meet(*program.function, path, nest.empty() ? nullptr : nest[0])) {
      Diagnostic refused = problem("instances with other spatial variables may share an element");
      conflict.explain(refused);
      return refused;
    }
  if (const auto why = undecided_above(path, nest.empty() ? nullptr : nest[0]))
    return problem(fmt::format("{} is {}", name_of(*block), *why));
  if (!used_by(&loop, IterType::reduce)) return problem(fmt::format("it is no reduce loop of {}", name_of(*block)));
  if (uses_var(realized.predicate, loop.loop_var))
    return problem(fmt::format("{} has a predicate on it: split the reduce axis without a tail", name_of(*block)));
  for (const For* l : nest)
    if (!used_by(l, IterType::spatial) && uses_var(realized.predicate, l->loop_var))
      return problem(fmt::format("{} has a predicate on its reduce axis", name_of(*block)));

  // The partial results are as many in every iteration, and each loop of the nest goes into other nests than its own.
  for (const For* l : nest)
    for (const For* other : l == &loop ? loops_above(path) : nest)
      if (uses_var(l->min, other->loop_var) || uses_var(l->extent, other->loop_var))
        return problem(fmt::format("the range of {} depends on {}", name_of(*l), name_of(*other)));

  // The partial results: the loop's iteration becomes a spatial axis, the other reduce loops are reduced.
  const Buffer partial = with(*output, [&](BufferNode& copy) {
    copy.name += "_rf";
    copy.shape.insert(copy.shape.begin() + static_cast<ptrdiff_t>(axis), loop.extent);
    copy.scope = "global";
    copy.data = output->data ? var(copy.name, output->data->dtype) : Var();
    copy.strides.clear();
    copy.elem_offset = Expr();
  });
  const auto indices_with = [&](const VarMap& map, const Expr& extra) {
    std::vector<Expr> indices;
    for (const Expr& index : found->store->indices) indices.push_back(substitute(index, map));
    indices.insert(indices.begin() + static_cast<ptrdiff_t>(axis), extra);
    return indices;
  };
  Id next = program.next;
  VarMap iters, over_loops;
  std::vector<IterVar> partial_iters;
  std::vector<Expr> partial_values;
  for (size_t i = 0; i < block->iter_vars.size(); ++i)
    if (block->iter_vars[i]->type == IterType::spatial) {
      partial_iters.push_back(fresh_iter(block->iter_vars[i], iters));
      partial_values.push_back(realized.iter_values[i]);
    }
  const Var lane = var("v" + loop.loop_var->name);
  partial_iters.push_back(make<IterVarNode>(Range{loop.min, loop.extent}, lane, IterType::spatial));
  partial_values.push_back(loop.loop_var);
  over_loops[loop.loop_var] = lane;
  for (const For* l : nest) {
    if (l == &loop || !used_by(l, IterType::reduce)) continue;
    const Var v = var("v" + l->loop_var->name);
    partial_iters.push_back(make<IterVarNode>(Range{l->min, l->extent}, v, IterType::reduce));
    partial_values.push_back(l->loop_var);
    over_loops[l->loop_var] = v;
  }
  for (size_t i = 0; i < block->iter_vars.size(); ++i)
    if (block->iter_vars[i]->type == IterType::reduce)
      iters[block->iter_vars[i]->var] = substitute(realized.iter_values[i], over_loops);
  const Expr lane_index = is_int(loop.min, 0) ? Expr(lane) : lane - loop.min;
  const std::vector<Expr> partial_indices = indices_with(iters, lane_index);
  const Id partial_id = next++;
  // Partial results of nothing have a start, too: where there may be nothing to reduce, in a nest of its own.
  const bool is_apart = may_be_empty(partial_iters);
  const Stmt start = make<BufferStore>(partial, found->identity, partial_indices, Expr());
  Ref<Block> partial_block = make_block(
      partial_iters, block->name + "_rf", is_apart ? Stmt() : start,
      make<BufferStore>(partial, found->combine(load(partial, partial_indices), substitute(found->value, iters)),
                        partial_indices, Expr()),
      partial_id);
  if (const ir::Value* border = block->annotations.find(tir::zero_border_key))  // its products are the block's
    partial_block = with(*partial_block, [&](Block& copy) { copy.annotations.set(tir::zero_border_key, *border); });
  const Stmt partial_nest =
      replace(Stmt(nest[0]), path.back(), realize(partial_values, realized.predicate, partial_block));

  const Stmt start_nest =
      is_apart ? nest_of_start(*partial_block, start, partial_values, realized.predicate, nest, next) : Stmt();

  // The last reduction, over the loop's iterations; it keeps the block's id.
  VarMap last_iters, last_loops;
  std::vector<IterVar> final_iters;
  std::vector<Expr> final_values;
  const Var last = var(loop.loop_var->name), last_lane = var("v" + loop.loop_var->name);
  std::vector<const For*> spatial;
  std::vector<Var> last_vars;
  for (const For* l : nest)
    if (used_by(l, IterType::spatial)) {
      spatial.push_back(l);
      last_vars.push_back(var(l->loop_var->name));
      last_loops[l->loop_var] = is_int(l->min, 0) ? Expr(last_vars.back()) : last_vars.back() + l->min;
    }
  for (size_t i = 0; i < block->iter_vars.size(); ++i)
    if (block->iter_vars[i]->type == IterType::spatial) {
      final_iters.push_back(fresh_iter(block->iter_vars[i], last_iters));
      final_values.push_back(substitute(realized.iter_values[i], last_loops));
    }
  final_iters.push_back(make<IterVarNode>(Range{int64(0), loop.extent}, last_lane, IterType::reduce));
  final_values.push_back(last);
  std::vector<Expr> output_indices;
  for (const Expr& index : found->store->indices) output_indices.push_back(substitute(index, last_iters));
  const Ref<Block> final_block = make_block(
      final_iters, block->name, *starts ? substitute(block->init, last_iters) : Stmt(),
      make<BufferStore>(
          output, found->combine(load(output, output_indices), load(partial, indices_with(last_iters, last_lane))),
          output_indices, Expr()),
      block->id);
  const Expr predicate = substitute(realized.predicate, last_loops);
  Stmt final_nest = loop_over(last, loop.extent, realize(final_values, predicate, final_block), next++);
  for (size_t i = spatial.size(); i-- > 0;)
    final_nest = loop_over(last_vars[i], spatial[i]->extent, final_nest, next++);

  const BlockRealize* scope = scope_of(path);
  std::vector<Stmt> nests{partial_nest, final_nest};
  if (start_nest) nests.insert(nests.begin(), start_nest);
  Stmt body = replace(program.function->body, Stmt(nest[0]), seq(std::move(nests)));
  const Path changed = path_to(body, scope->block->id);
  body = with_allocation(body, *changed.back().as<BlockRealize>(), partial);
  return edited(program, with_body(program.function, body), next, {partial_id});
}

}  // namespace lathe::schedule::primitives
