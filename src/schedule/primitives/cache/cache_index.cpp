// cache_index: indices that a block computes are computed before, once for each value of the variables in them.
#include <unordered_set>

#include "ir/visit.h"
#include "schedule/analysis/access.h"
#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(cache_index_forgets_offset, "schedule_test", "cache_index: what is computed is that of the next element");

namespace {

// What is computed before: the expression, and where its value lies.
struct Computation {
  Expr value;
  std::vector<IterVar> over;  // the block's variables in it
  Buffer buffer;
};

Expr expr_of(const NodeRef& node) { return Expr(static_cast<const ExprNode*>(node.get())); }

class IndexSearch {
 public:
  explicit IndexSearch(const Block& block) : block_(block) {
    pre_order(block.body, [&](const NodeRef& node) {
      if (const auto* loop = node.as<For>()) inner_.insert(loop->loop_var.get());
      if (const auto* let = node.as<LetStmt>()) inner_.insert(let->var.get());
      return true;
    });
  }

  // The computations, in order of their first use: whole indices where `threshold` is 0, else the largest expressions
  // in them that occur as often.
  std::vector<Expr> find(const Stmt& body, int64_t threshold) {
    each_index(body, [&](const Expr& index) { count(index); });
    each_index(body, [&](const Expr& index) { choose(index, threshold); });
    return std::move(chosen_);
  }

 private:
  // Indices of loads outside of inner blocks.
  static void each_index(const NodeRef& root, support::function_ref<void(const Expr&)> visit) {
    pre_order(root, [&](const NodeRef& node) {
      if (const auto* load = node.as<BufferLoad>())
        for (const Expr& index : load->indices) visit(index);
      return !node.is<BlockRealize>();
    });
  }

  // Arithmetic on the block's variables and on what is known outside of it, without a division that could be by zero.
  bool computed(const Expr& e) const {
    if (e.is<VarNode>() || as_int(e) || !e->dtype.is_scalar() || !e->dtype.is_integer()) return false;
    bool moves = false, plain = true;
    pre_order(e, [&](const NodeRef& node) {
      if (const auto* v = node.as<VarNode>()) {
        const bool own = std::any_of(block_.iter_vars.begin(), block_.iter_vars.end(),
                                     [&](const IterVar& iter) { return iter->var.get() == v; });
        moves = moves || own;
        plain = plain && !inner_.count(v);
      }
      plain = plain && !node.is<BufferLoad>() && !node.is<Call>() && !node.is<Let>();
      const auto by_constant = [&](const Expr& divisor) { plain = plain && as_int(divisor).value_or(0) != 0; };
      if (const auto* n = node.as<FloorDiv>()) by_constant(n->b);
      if (const auto* n = node.as<FloorMod>()) by_constant(n->b);
      if (const auto* n = node.as<Div>()) by_constant(n->b);
      if (const auto* n = node.as<Mod>()) by_constant(n->b);
      return plain;
    });
    return moves && plain;
  }

  size_t occurrences(const Expr& e) const {
    size_t sum = 0;
    for (const auto& [known, times] : counted_)
      if (structural_equal(known, e)) sum += times;
    return sum;
  }

  void count(const Expr& index) {
    pre_order(index, [&](const NodeRef& node) {
      if (node->node_class().family != "expr") return false;
      const Expr e = expr_of(node);
      if (computed(e)) {
        const auto it = std::find_if(counted_.begin(), counted_.end(),
                                     [&](const auto& known) { return structural_equal(known.first, e); });
        if (it == counted_.end())
          counted_.emplace_back(e, 1);
        else
          ++it->second;
      }
      return true;
    });
  }

  void choose(const Expr& index, int64_t threshold) {
    pre_order(index, [&](const NodeRef& node) {
      if (node->node_class().family != "expr") return false;
      const Expr e = expr_of(node);
      if (!computed(e)) return threshold > 0;
      if (threshold > 0 && occurrences(e) < static_cast<size_t>(threshold)) return true;
      if (std::none_of(chosen_.begin(), chosen_.end(), [&](const Expr& known) { return structural_equal(known, e); }))
        chosen_.push_back(e);
      return false;
    });
  }

  const Block& block_;
  std::unordered_set<const VarNode*> inner_;  // variables that have values inside the block only
  std::vector<std::pair<Expr, size_t>> counted_;
  std::vector<Expr> chosen_;
};

// The block's loads with what is computed read instead.
class UseComputed : public Rewriter {
 public:
  explicit UseComputed(const std::vector<Computation>& computations) : computations_(computations) {}

 protected:
  NodeRef visit(NodeRef node) override {
    if (node->node_class().has_identity || node.is<BlockRealize>()) return node;
    if (in_index_ && node->node_class().family == "expr")
      for (const Computation& one : computations_)
        if (structural_equal(one.value, expr_of(node))) {
          std::vector<Expr> at;
          for (const IterVar& iter : one.over) at.push_back(ir::sub(iter->var, iter->dom.min));
          return load(one.buffer, std::move(at));
        }
    const auto* access = node.as<BufferLoad>();
    if (!access) return descend(std::move(node));
    std::vector<Expr> indices;
    const bool outer = std::exchange(in_index_, true);
    for (const Expr& index : access->indices) indices.push_back(expr_of(visit(index)));
    in_index_ = outer;
    return with(*access, [&](BufferLoad& copy) { copy.indices = std::move(indices); });
  }

 private:
  const std::vector<Computation>& computations_;
  bool in_index_ = false;
};

// A block that computes the value for all values of its variables, in loops of their own.
Stmt nest_of(const Computation& one, size_t number, Id& next, Id& block_id) {
  VarMap values;
  std::vector<IterVar> iters;
  std::vector<Var> loops;
  std::vector<Expr> at, bound;
  for (const IterVar& iter : one.over) {
    const Var v = var(iter->var->name);
    iters.push_back(make<IterVarNode>(Range{int64(0), iter->dom.extent}, v, IterType::spatial));
    loops.push_back(var(fmt::format("ax{}", loops.size())));
    values[iter->var] = v + iter->dom.min;
    at.push_back(v);
    bound.push_back(loops.back());
  }
  Expr value = substitute(one.value, values);
  if (support::flip(cache_index_forgets_offset)) value = value + constant(value->dtype, 1);
  const Stmt store = make<BufferStore>(one.buffer, value, at, Expr());
  block_id = next++;
  Stmt nest = realize(std::move(bound), boolean(true),
                      block_with_regions(iters, fmt::format("index_{}", number), Stmt{}, store, block_id));
  for (size_t i = loops.size(); i-- > 0;) nest = loop_over(loops[i], one.over[i]->dom.extent, nest, next++);
  return nest;
}

}  // namespace

Result<Edit> cache_index(const Program& program, Id id, const std::string& scope_name, int64_t threshold) {
  const Path path = TRY(block_path(program, id));
  const auto& realized = *path.back().as<BlockRealize>();
  const Ref<Block> block = realized.block;
  const auto problem = [&](std::string why) {
    return refuse(codes::bad_argument, fmt::format("cannot cache the indices of {}: {}", name_of(*block), why));
  };
  if (threshold < 0) return problem(fmt::format("the threshold {} is negative", threshold));
  const BlockRealize* scope = scope_of(path);
  if (!scope) return problem("it is the root block");
  if (tensor_intrin_of(*block)) return problem("it is tensorized");
  // Before all of the scope's body: the domains may not depend on loops in it.
  size_t at = path.size() - 1;
  while (at > 0 && !path[at - 1].is<Block>() && !path[at - 1].is<BlockRealize>()) --at;
  while (at + 1 < path.size() && path[at].is<SeqStmt>()) ++at;
  const std::vector<const For*> loops = loops_above(path);

  Edit nothing{program, {}, {}};
  std::vector<Computation> computations;
  for (const Expr& value : IndexSearch(*block).find(block->body, threshold)) {
    Computation one{value, {}, {}};
    std::vector<Expr> shape;
    for (const IterVar& iter : block->iter_vars) {
      if (!uses_var(value, iter->var)) continue;
      for (const For* loop : loops)
        if (uses_var(iter->dom.min, loop->loop_var) || uses_var(iter->dom.extent, loop->loop_var))
          return problem(fmt::format("the domain of its variable '{}' depends on {}", iter->var->name, name_of(*loop)));
      one.over.push_back(iter);
      shape.push_back(iter->dom.extent);
    }
    one.buffer = buffer(fmt::format("index_var_{}", computations.size()), std::move(shape), value->dtype, scope_name);
    computations.push_back(std::move(one));
  }
  if (computations.empty()) return nothing;

  Id next = program.next;
  std::vector<Stmt> nests;
  std::vector<Id> created;
  for (const Computation& one : computations) {
    created.emplace_back();
    nests.push_back(nest_of(one, nests.size(), next, created.back()));
  }
  const Stmt changed = with(realized, [&](BlockRealize& copy) {
    copy.block = with_regions(with(*block, [&](Block& inner) { inner.body = UseComputed(computations)(block->body); }));
  });
  nests.push_back(replace(path[at], path.back(), changed));
  Stmt body = replace(program.function->body, path[at], seq(nests));
  for (const Computation& one : computations) {
    const Path to_scope = path_to(body, scope->block->id);
    body = with_allocation(body, *to_scope.back().as<BlockRealize>(), one.buffer);
  }
  return edited(program, with_body(program.function, body), next, created);
}

}  // namespace lathe::schedule::primitives
