#include "ir/visit.h"
#include "schedule/analysis/dependence.h"
#include "schedule/primitives/reduction/combination.h"
#include "schedule/primitives/rewrite.h"
#include "tir/analysis/zero_border.h"

namespace lathe::schedule::primitives {

namespace {

IterVar fresh_iter(const IterVar& iter, VarMap& map) {
  const Var v = var(iter->var->name);
  map[iter->var] = v;
  return with(*iter, [&](IterVarNode& copy) { copy.var = v; });
}

// Whether a reduce axis of the block may have no values at all.
bool may_be_empty(const std::vector<IterVar>& iters) {
  arith::Analyzer analyzer;
  return std::any_of(iters.begin(), iters.end(), [&](const IterVar& iter) {
    return iter->type == IterType::reduce && !analyzer.can_prove(iter->dom.extent >= 1);
  });
}

// Loops once more, from zero, under variables of their own.
struct LoopsAnew {
  std::vector<const For*> loops;
  std::vector<Var> vars;
  VarMap values;  // what the variables of `loops` are there

  void add(const For& loop) {
    loops.push_back(&loop);
    vars.push_back(var(loop.loop_var->name));
    values[loop.loop_var] = is_int(loop.min, 0) ? Expr(vars.back()) : vars.back() + loop.min;
  }

  Stmt around(Stmt body, Id& next) const {
    for (size_t i = loops.size(); i-- > 0;) body = loop_over(vars[i], loops[i]->extent, body, next++);
    return body;
  }
};

// Whether the loop moves a variable of that type of the block, which is run at `values`.
bool moves_axis(const For& loop, const Block& block, const std::vector<Expr>& values, IterType type) {
  for (size_t i = 0; i < block.iter_vars.size(); ++i)
    if (block.iter_vars[i]->type == type && uses_var(values[i], loop.loop_var)) return true;
  return false;
}

// Variables of a block that does a part of another's work, what they are bound to, and what the other's variables are
// in terms of them.
struct BoundAxes {
  std::vector<IterVar> iters;
  std::vector<Expr> values;
  VarMap replaced;

  void add(IterVar iter, Expr value) {
    iters.push_back(std::move(iter));
    values.push_back(std::move(value));
  }
};

// Those for the spatial variables of the block, which is run at `values`, in loops whose variables are `loops`.
BoundAxes spatial_axes(const Block& block, const std::vector<Expr>& values, const VarMap& loops) {
  BoundAxes axes;
  for (size_t i = 0; i < block.iter_vars.size(); ++i)
    if (block.iter_vars[i]->type == IterType::spatial)
      axes.add(fresh_iter(block.iter_vars[i], axes.replaced), substitute(values[i], loops));
  return axes;
}

// A block that stores `start` for every value of the spatial variables of `block` where the predicate holds, in those
// loops of `nest` that give them their values.
Stmt nest_of_start(const Block& block, const Stmt& start, const std::vector<Expr>& values, const Expr& predicate,
                   const std::vector<const For*>& nest, Id& next) {
  LoopsAnew loops;
  for (const For* l : nest)
    if (moves_axis(*l, block, values, IterType::spatial)) loops.add(*l);
  BoundAxes axes = spatial_axes(block, values, loops.values);
  const Id id = next++;
  return loops.around(realize(std::move(axes.values), substitute(predicate, loops.values),
                              block_with_regions(std::move(axes.iters), block.name + "_start", Stmt(),
                                                 substitute(start, axes.replaced), id)),
                      next);
}

Diagnostic refuse_rfactor(const For& loop, const std::string& why) {
  return refuse(codes::dependence, fmt::format("cannot rfactor {}: {}", name_of(loop), why));
}

// A reduction, one of whose loops becomes an axis of partial results.
class Factoring {
 public:
  Factoring(const Program& program, const For& loop, const Path& path) : program_(program), loop_(loop), path_(path) {}

  // How the block combines values.
  Status find_combination() {
    if (program_.proves && !is_reduction(*block_)) return problem(fmt::format("{} is no reduction", name_of(*block_)));
    starts_ = block_->init ? runs_init(realized_, loops_above(path_)) : false;
    if (!program_.proves) starts_ = starts_.value_or(true);
    if (!starts_) return problem(fmt::format("could not tell whether the init of {} runs here", name_of(*block_)));
    const auto found = combination(*block_);
    if (!found)
      return problem(fmt::format("how {} combines values is not a sum, product, minimum or maximum", name_of(*block_)));
    found_ = *found;
    return support::success();
  }

  // Where the partial results have their axis.
  Status find_axis(int64_t factor_axis) {
    const int64_t rank = static_cast<int64_t>(found_.store->buffer->shape.size());
    if (factor_axis < -rank - 1 || factor_axis > rank)
      return refuse(codes::bad_argument, fmt::format("cannot rfactor {}: factor_axis {} is not within [{}, {}]",
                                                     name_of(loop_), factor_axis, -rank - 1, rank));
    axis_ = static_cast<ptrdiff_t>(factor_axis < 0 ? factor_axis + rank + 1 : factor_axis);
    return support::success();
  }

  // The nest from its outermost reduce loop down, each loop the only statement of the one above.
  Status find_nest() {
    for (const For* l : loops_above(path_)) {
      const bool reduces = is_driven(*l, IterType::reduce);
      if (reduces && is_driven(*l, IterType::spatial))
        return problem(fmt::format("{} drives both spatial and reduce axes of {}", name_of(*l), name_of(*block_)));
      if (nest_.empty() && !reduces) continue;
      if (!nest_.empty() && nest_.back()->body.get() != l)
        return problem(fmt::format("{} is not the only statement in {}", name_of(*l), name_of(*nest_.back())));
      nest_.push_back(l);
    }
    return support::success();
  }

  Status check_nest() const {
    const For* top = nest_.empty() ? nullptr : nest_[0];
    if (program_.proves)
      if (const Conflict conflict = instances_that_meet(*program_.function, path_, top)) {
        Diagnostic refused = problem("instances with other spatial variables may share an element");
        conflict.explain(refused);
        return refused;
      }
    if (const auto why = undecided_above(path_, top)) return problem(fmt::format("{} is {}", name_of(*block_), *why));
    if (!is_driven(loop_, IterType::reduce))
      return problem(fmt::format("it is no reduce loop of {}", name_of(*block_)));
    if (uses_var(realized_.predicate, loop_.loop_var))
      return problem(fmt::format("{} has a predicate on it: split the reduce axis without a tail", name_of(*block_)));
    for (const For* l : nest_)
      if (!is_driven(*l, IterType::spatial) && uses_var(realized_.predicate, l->loop_var))
        return problem(fmt::format("{} has a predicate on its reduce axis", name_of(*block_)));

    // The partial results are as many in every iteration, and each loop of the nest goes into other nests than its own.
    for (const For* l : nest_)
      for (const For* other : l == &loop_ ? loops_above(path_) : nest_)
        if (uses_var(l->min, other->loop_var) || uses_var(l->extent, other->loop_var))
          return problem(fmt::format("the range of {} depends on {}", name_of(*l), name_of(*other)));
    return support::success();
  }

  Edit run() const {
    const Buffer partial = partial_results();
    Id next = program_.next;
    const Id partial_id = next++;
    std::vector<Stmt> nests = partial_nests(partial, partial_id, next);
    nests.push_back(final_nest(partial, next));
    const BlockRealize* scope = scope_of(path_);
    Stmt body = replace(program_.function->body, Stmt(nest_[0]), seq(std::move(nests)));
    const Path changed = path_to(body, scope->block->id);
    body = with_allocation(body, *changed.back().as<BlockRealize>(), partial);
    return edited(program_, with_body(program_.function, body), next, {partial_id});
  }

 private:
  Diagnostic problem(const std::string& why) const { return refuse_rfactor(loop_, why); }

  bool is_driven(const For& by, IterType type) const { return moves_axis(by, *block_, realized_.iter_values, type); }

  Buffer partial_results() const {
    const Buffer& output = found_.store->buffer;
    return with(*output, [&](BufferNode& copy) {
      copy.name += "_rf";
      copy.shape.insert(copy.shape.begin() + axis_, loop_.extent);
      copy.scope = "global";
      copy.data = output->data ? var(copy.name, output->data->dtype) : Var();
      copy.strides.clear();
      copy.elem_offset = Expr();
    });
  }

  // Where the block's result lies, in terms of other variables.
  std::vector<Expr> output_indices(const VarMap& map) const {
    std::vector<Expr> indices;
    for (const Expr& index : found_.store->indices) indices.push_back(substitute(index, map));
    return indices;
  }

  std::vector<Expr> partial_indices(const VarMap& map, const Expr& lane) const {
    std::vector<Expr> indices = output_indices(map);
    indices.insert(indices.begin() + axis_, lane);
    return indices;
  }

  // The partial results: the loop's iteration becomes a spatial axis, the other reduce loops are reduced.
  BoundAxes partial_axes(const Var& lane) const {
    BoundAxes axes = spatial_axes(*block_, realized_.iter_values, {});
    VarMap over_loops;
    axes.add(make<IterVarNode>(Range{loop_.min, loop_.extent}, lane, IterType::spatial), loop_.loop_var);
    over_loops[loop_.loop_var] = lane;
    for (const For* l : nest_) {
      if (l == &loop_ || !is_driven(*l, IterType::reduce)) continue;
      const Var v = var("v" + l->loop_var->name);
      axes.add(make<IterVarNode>(Range{l->min, l->extent}, v, IterType::reduce), l->loop_var);
      over_loops[l->loop_var] = v;
    }
    for (size_t i = 0; i < block_->iter_vars.size(); ++i)
      if (block_->iter_vars[i]->type == IterType::reduce)
        axes.replaced[block_->iter_vars[i]->var] = substitute(realized_.iter_values[i], over_loops);
    return axes;
  }

  // The nest that computes them, behind one for their start where that is apart.
  std::vector<Stmt> partial_nests(const Buffer& partial, Id id, Id& next) const {
    const Var lane = var("v" + loop_.loop_var->name);
    const BoundAxes axes = partial_axes(lane);
    const std::vector<Expr> indices =
        partial_indices(axes.replaced, is_int(loop_.min, 0) ? Expr(lane) : lane - loop_.min);
    // Partial results of nothing have a start, too: where there may be nothing to reduce, in a nest of its own.
    const bool is_apart = may_be_empty(axes.iters);
    const Stmt start = make<BufferStore>(partial, found_.identity, indices, Expr());
    const Expr value = found_.combine(load(partial, indices), substitute(found_.value, axes.replaced));
    Ref<Block> block = block_with_regions(axes.iters, block_->name + "_rf", is_apart ? Stmt() : start,
                                          make<BufferStore>(partial, value, indices, Expr()), id);
    if (const ir::Value* border = block_->annotations.find(tir::zero_border_key))  // its products are the block's
      block = with(*block, [&](Block& copy) { copy.annotations.set(tir::zero_border_key, *border); });
    std::vector<Stmt> nests;
    if (is_apart) nests.push_back(nest_of_start(*block, start, axes.values, realized_.predicate, nest_, next));
    nests.push_back(replace(Stmt(nest_[0]), path_.back(), realize(axes.values, realized_.predicate, block)));
    return nests;
  }

  // The last reduction, over the loop's iterations; it keeps the block's id.
  Stmt final_nest(const Buffer& partial, Id& next) const {
    const Buffer& output = found_.store->buffer;
    const Var last = var(loop_.loop_var->name), lane = var("v" + loop_.loop_var->name);
    LoopsAnew spatial;
    for (const For* l : nest_)
      if (is_driven(*l, IterType::spatial)) spatial.add(*l);
    BoundAxes axes = spatial_axes(*block_, realized_.iter_values, spatial.values);
    axes.add(make<IterVarNode>(Range{int64(0), loop_.extent}, lane, IterType::reduce), last);
    const std::vector<Expr> indices = output_indices(axes.replaced);
    const Expr value = found_.combine(load(output, indices), load(partial, partial_indices(axes.replaced, lane)));
    const Ref<Block> block =
        block_with_regions(axes.iters, block_->name, *starts_ ? substitute(block_->init, axes.replaced) : Stmt(),
                           make<BufferStore>(output, value, indices, Expr()), block_->id);
    const Expr predicate = substitute(realized_.predicate, spatial.values);
    return spatial.around(loop_over(last, loop_.extent, realize(axes.values, predicate, block), next++), next);
  }

  const Program& program_;
  const For& loop_;
  const Path& path_;
  const BlockRealize& realized_ = *path_.back().as<BlockRealize>();
  const Ref<Block>& block_ = realized_.block;
  std::optional<bool> starts_;  // whether its init runs here
  Combination found_;
  ptrdiff_t axis_ = 0;
  std::vector<const For*> nest_;
};

}  // namespace

Result<Edit> rfactor(const Program& program, Id loop_id, int64_t factor_axis) {
  const Path to_loop = TRY(serial_loop(program, loop_id, "rfactor"));
  const For& loop = *to_loop.back().as<For>();
  const std::vector<Ref<BlockRealize>> blocks = outer_blocks(loop.body);
  if (blocks.size() != 1) return refuse_rfactor(loop, fmt::format("it holds {} blocks, not one", blocks.size()));
  const Path path = path_to(program.function->body, blocks[0]->block->id);
  Factoring factoring(program, loop, path);
  TRY(factoring.find_combination());
  TRY(factoring.find_axis(factor_axis));
  TRY(factoring.find_nest());
  TRY(factoring.check_nest());
  return factoring.run();
}

}  // namespace lathe::schedule::primitives
