// Stages, which compute each element of a tensor once, reversed as blocks of loops that schedules understand: over the
// dimensions of what is added to where the indices show them, serial inside where they do not.
#include "ir/structural.h"
#include "ir/visit.h"
#include "support/mutation.h"
#include "tir/analysis/regions.h"
#include "tir/differentiate/reverse.h"

namespace lathe::tir {

LATHE_FAULT(gradient_shares_largest, "tir_test graph_test", "every one of several largest elements gets the gradient");

namespace {

// The block under the loops of `s`, where every loop is bound to one variable of it and nothing else happens.
const Block* block_of_loops(const Stmt& s) {
  std::vector<const For*> loops;
  Stmt inner = s;
  while (const auto* loop = inner.as<For>()) {
    loops.push_back(loop);
    inner = loop->body;
  }
  const auto* realize = inner.as<BlockRealize>();
  if (!realize || !ir::is_int(realize->predicate, 1) || realize->iter_values.size() != loops.size()) return nullptr;
  const Block& block = *realize->block;
  if (!block.alloc_buffers.empty() || !block.match_buffers.empty()) return nullptr;
  for (size_t k = 0; k < loops.size(); ++k) {
    const IterVarNode& iter = *block.iter_vars[k];
    if (!realize->iter_values[k].same_as(loops[k]->loop_var) || !ir::structural_equal(iter.dom.min, loops[k]->min) ||
        !ir::structural_equal(iter.dom.extent, loops[k]->extent) ||
        (iter.type != IterType::spatial && iter.type != IterType::reduce))
      return nullptr;
  }
  return &block;
}

// What is combined with the element so far: `b` of combine(element, b).
template <class Combination>
Expr combined_with(const Expr& e, const Expr& element) {
  const auto* n = e.as<Combination>();
  if (!n) return {};
  if (ir::structural_equal(n->a, element)) return n->b;
  return ir::structural_equal(n->b, element) ? n->a : Expr();
}

bool reads(const NodeRef& e, const Buffer& buffer) { return read_in(e).count(buffer.get()) != 0; }

// Loops and a block in which the index of what is added to shows some axes: those are the block's own.
class ScatterBlock {
 public:
  ScatterBlock(const Stage& stage, const std::vector<Contribution>& added) : stage_(stage) {
    for (const IterVar& axis : stage.axes) {
      bool in_all = true;
      for (const Contribution& c : added) in_all = in_all && names_dimension(c, axis->var);
      shown_.push_back(in_all);
    }
  }

  // Whether every dimension is an axis of its own, or the same everywhere: no two instances that differ in the axes
  // shown meet at an element.
  bool shows_all(const Contribution& c) const {
    return std::all_of(c.element->indices.begin(), c.element->indices.end(), [&](const Expr& index) {
      for (size_t k = 0; k < stage_.axes.size(); ++k)
        if (ir::uses_var(index, stage_.axes[k]->var) && !(shown_[k] && index.same_as(stage_.axes[k]->var)))
          return false;
      return read_in(index).empty();
    });
  }

  // Whether every element of the adjoint is met: its dimensions are the axes shown, in their whole extent, and the
  // others surely run.
  bool covers(const Contribution& c) const {
    if (!shows_all(c)) return false;
    for (size_t d = 0; d < c.element->indices.size(); ++d) {
      const auto axis = std::find_if(stage_.axes.begin(), stage_.axes.end(),
                                     [&](const IterVar& a) { return c.element->indices[d].same_as(a->var); });
      const Expr& extent = c.element->buffer->shape[d];
      if (axis == stage_.axes.end()
              ? !ir::is_int(extent, 1)
              : !ir::is_int((*axis)->dom.min, 0) || !ir::structural_equal((*axis)->dom.extent, extent))
        return false;
    }
    for (size_t k = 0; k < stage_.axes.size(); ++k)
      if (!shown_[k] && ir::as_int(stage_.axes[k]->dom.extent).value_or(0) < 1) return false;
    return true;
  }
  bool reduces() const { return std::find(shown_.begin(), shown_.end(), false) != shown_.end(); }

  // `body` for every point; the axes not shown are reduce axes, or loops in the block.
  Stmt around(Stmt body, bool reduces, const std::string& name, Stmt init = {}) const {
    VarMap fresh;
    std::vector<IterVar> iters;
    std::vector<Var> loops;
    for (size_t k = 0; k < stage_.axes.size(); ++k) {
      const IterVarNode& axis = *stage_.axes[k];
      if (!shown_[k] && !reduces) continue;
      const Var v = ir::var(axis.var->name);
      fresh[axis.var] = v;
      iters.push_back(ir::make<IterVarNode>(axis.dom, v, shown_[k] ? IterType::spatial : IterType::reduce));
      loops.push_back(ir::var(axis.var->name.substr(axis.var->name.starts_with("v_") ? 2 : 0)));
    }
    for (size_t k = stage_.axes.size(); k-- > 0;) {
      if (shown_[k] || reduces) continue;
      const IterVarNode& axis = *stage_.axes[k];
      const Var loop = ir::var(axis.var->name);
      fresh[axis.var] = loop;
      body = ir::make<For>(loop, axis.dom.min, axis.dom.extent, ForKind::serial, std::move(body));
    }
    body = substitute(body, fresh);
    if (init) init = substitute(init, fresh);
    auto block =
        ir::make<Block>(iters, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{},
                        std::vector<BufferRegion>{}, name, std::move(init), std::move(body), Attributes());
    Regions regions = infer_regions(*block);
    block = ir::with(*block, [&](Block& copy) {
      copy.reads = std::move(regions.reads);
      copy.writes = std::move(regions.writes);
    });
    Stmt nest = ir::make<BlockRealize>(std::vector<Expr>(loops.begin(), loops.end()), ir::boolean(true), block);
    for (size_t k = loops.size(); k-- > 0;)
      nest = ir::make<For>(loops[k], iters[k]->dom.min, iters[k]->dom.extent, ForKind::serial, std::move(nest));
    return nest;
  }

 private:
  // One dimension is the axis, and no other speaks of it.
  static bool names_dimension(const Contribution& c, const Var& axis) {
    int named = 0, used = 0;
    for (const Expr& index : c.element->indices) {
      named += index.same_as(axis);
      used += ir::uses_var(index, axis);
    }
    return named == 1 && used == 1;
  }

  const Stage& stage_;
  std::vector<bool> shown_;
};

Stmt reverse_sum(const Stage& stage, const Contribution& c, const Adjoints& adjoints, const BufferSet& overwritten) {
  const ScatterBlock block(stage, {c});
  const std::string name = adjoints.of(c.element->buffer)->name;
  if (!block.shows_all(c)) return block.around(add_to_adjoint(c, adjoints), false, name);
  Contribution plain = c;
  if (c.guard) plain.amount = ir::if_then_else(c.guard, c.amount, ir::constant(c.amount->dtype, 0));
  plain.guard = {};
  if (const Buffer& adjoint = adjoints.of(c.element->buffer); overwritten.count(adjoint.get())) {
    const std::vector<Expr>& at = c.element->indices;
    if (!block.reduces()) return block.around(ir::make<BufferStore>(adjoint, plain.amount, at), true, name);
    const Stmt zero = ir::make<BufferStore>(adjoint, ir::constant(adjoint->dtype, 0), at);
    return block.around(add_to_adjoint(plain, adjoints), true, name, zero);
  }
  return block.around(add_to_adjoint(plain, adjoints), true, name);
}

// The first of the elements that are equal to the result takes the adjoint, and leaves nothing to the others.
Stmt reverse_choice(const Stage& stage, const std::vector<Contribution>& all, const Adjoints& adjoints) {
  const Buffer& own = adjoints.of(stage.output);
  std::vector<Stmt> steps;
  for (const Contribution& c : all) steps.push_back(add_to_adjoint(c, adjoints));
  if (!support::flip(gradient_shares_largest))
    steps.push_back(ir::make<BufferStore>(own, ir::constant(own->dtype, 0), stage.at));
  const Expr is_it = ir::eq(stage.value, ir::load(stage.output, stage.at));
  Stmt body = ir::make<IfThenElse>(is_it, seq(std::move(steps)), Stmt());
  std::vector<Contribution> touched = all;
  touched.push_back({ir::cast<BufferLoad>(ir::load(own, stage.at)), {}, {}});
  return ScatterBlock(stage, touched).around(std::move(body), false, own->name + "_first");
}

std::vector<Contribution> contributions_of(const Stage& stage, const Adjoints& adjoints) {
  const Expr g = ir::load(adjoints.of(stage.output), stage.at);
  return contributions(stage.value, g, [&](const Buffer& b) { return adjoints.has(b); });
}

}  // namespace

std::optional<Stage> as_stage(const Stmt& s) {
  const Block* block = block_of_loops(s);
  const auto* store = block ? block->body.as<BufferStore>() : nullptr;
  if (!store || store->predicate) return std::nullopt;
  Stage stage;
  stage.axes = block->iter_vars;
  stage.output = store->buffer;
  stage.at = store->indices;
  size_t spatial = 0;
  for (const IterVar& axis : stage.axes) {
    if (axis->type != IterType::spatial) continue;
    ++spatial;
    if (std::none_of(stage.at.begin(), stage.at.end(), [&](const Expr& i) { return i.same_as(axis->var); }))
      return std::nullopt;
  }
  if (spatial != stage.at.size()) return std::nullopt;
  const Expr element = ir::load(stage.output, stage.at);
  stage.value = store->value;
  if (spatial < stage.axes.size()) {
    using Kind = Stage::Kind;
    if (const Expr added = combined_with<Add>(store->value, element)) {
      stage.kind = Kind::sum, stage.value = added;
    } else if (const Expr larger = combined_with<Max>(store->value, element)) {
      stage.kind = Kind::largest, stage.value = larger;
    } else if (const Expr smaller = combined_with<Min>(store->value, element)) {
      stage.kind = Kind::smallest, stage.value = smaller;
    } else {
      return std::nullopt;
    }
  }
  if (reads(stage.value, stage.output)) return std::nullopt;
  if (block->init) {
    const auto* init = block->init.as<BufferStore>();
    if (!init || init->buffer != stage.output || !read_in(init->value).empty()) return std::nullopt;
    stage.has_init = true;
  }
  return stage;
}

BufferSet covered_by_reversal(const Stage& stage, const Adjoints& adjoints) {
  BufferSet covered;
  if (!adjoints.has(stage.output) || (stage.kind != Stage::Kind::assign && stage.kind != Stage::Kind::sum))
    return covered;
  for (const Contribution& c : contributions_of(stage, adjoints))
    if (ScatterBlock(stage, {c}).covers(c)) covered.insert(adjoints.of(c.element->buffer).get());
  return covered;
}

std::vector<Stmt> reverse_stage(const Stage& stage, const Adjoints& adjoints, const BufferSet& overwritten) {
  std::vector<Stmt> statements;
  if (!adjoints.has(stage.output)) return statements;
  const std::vector<Contribution> all = contributions_of(stage, adjoints);
  const bool sums = stage.kind == Stage::Kind::assign || stage.kind == Stage::Kind::sum;
  if (sums)
    for (const Contribution& c : all) statements.push_back(reverse_sum(stage, c, adjoints, overwritten));
  else if (!all.empty())
    statements.push_back(reverse_choice(stage, all, adjoints));
  return statements;
}

BufferSet needed_by_reversal(const Stage& stage, const Adjoints& adjoints) {
  BufferSet needed;
  for (const Stmt& s : reverse_stage(stage, adjoints)) merge(needed, read_in(s));
  return needed;
}

}  // namespace lathe::tir
