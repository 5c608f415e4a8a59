#include "arith/analyzer.h"
#include "support/mutation.h"
#include "tir/analysis/regions.h"
#include "tir/analysis/step.h"
#include "tir/passes/library/remove_no_op.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(partition_loops_bound, "tir_test", "the part of a loop without guards is one iteration too long");
LATHE_FAULT(partition_loops_fails, "tir_test", "where one guard fails, all that fail somewhere there are taken to");

namespace {

using arith::Analyzer;

// A function may grow by this many statements (unrolled ones counted as often as they will be written out).
constexpr int64_t growth_budget = 1536;

// Statements, as often as unrolling will write them out.
int64_t weight(const Stmt& s) {
  int64_t total = 1;
  s->node_class().for_each_child(*s, [&](const NodeRef& child) {
    if (child->node_class().family == StmtNode::family)
      total += weight(Stmt(static_cast<const StmtNode*>(child.get())));
  });
  const auto* loop = s.as<For>();
  const auto extent = loop && loop->kind == ForKind::unrolled ? as_int(loop->extent) : std::nullopt;
  return total * std::max<int64_t>(extent.value_or(1), 1);
}

// One comparison inside a loop, as `margin` >= 0, and what is known of the margin over the loops further in.
struct Guard {
  Expr condition;   // the node in the body
  Expr worst;       // the smallest margin over the loops between the loop and the guard
  bool exact;       // and the only one: these loops do not matter
  Expr bound = {};  // it holds from this iteration on, or to the one before it
  bool rises = {};
};

// The margin of an index comparison: it holds where the margin is at least zero.
Expr margin_of(const Expr& e) {
  const auto is_index = [](const auto& n) { return n.a->dtype == DType::int64(); };
  if (const auto* n = e.as<LT>(); n && is_index(*n)) return n->b - n->a - 1;
  if (const auto* n = e.as<LE>(); n && is_index(*n)) return n->b - n->a;
  if (const auto* n = e.as<GT>(); n && is_index(*n)) return n->a - n->b - 1;
  if (const auto* n = e.as<GE>(); n && is_index(*n)) return n->a - n->b;
  return {};
}

bool reads_memory(const Expr& e) {
  bool reads = false;
  post_order(e, [&](const NodeRef& n) { reads |= n.is<BufferLoad>() || n.is<Call>(); });
  return reads;
}

// The comparisons that guard something in the body of a loop, with their worst margins.
class GuardSearch {
 public:
  GuardSearch(const Var& var, Analyzer& known) : var_(var), known_(known) {}

  std::vector<Guard> guards;

  void search(const NodeRef& node) {
    if (!node || node->node_class().has_identity) return;
    if (const auto* loop = node.as<For>()) {
      inner_[loop->loop_var.get()] = {loop->min, loop->extent};
      if (const auto* branch = loop->body.as<IfThenElse>(); branch && is_clipped_by(*loop, *branch))
        return search(branch->then_case);
    }
    if (const auto* let = node.as<LetStmt>()) defined_.insert(let->var.get());
    if (const auto* branch = node.as<IfThenElse>(); branch && !is_cheap(*branch)) condition(branch->condition);
    if (const auto* call = node.as<Call>(); call && call->op == &intrinsic::if_then_else) condition(call->args[0]);
    if (const auto* choice = node.as<Select>()) condition(choice->condition);
    node->node_class().for_each_child(*node, [&](const NodeRef& child) { search(child); });
  }

 private:
  // Whether what is asked costs nothing beside what it guards: a loop that repeats many statements.
  static bool is_cheap(const IfThenElse& branch) {
    const auto* loop = branch.else_case ? nullptr : branch.then_case.as<For>();
    return loop && loop->kind == ForKind::serial && as_int(loop->extent).value_or(8) >= 8 && weight(loop->body) >= 64;
  }

  // Whether the loop, which does nothing else, will only run where the condition holds, and is worth that: no guard is
  // left then for the loops around it.
  bool is_clipped_by(const For& loop, const IfThenElse& branch) const {
    constexpr int64_t enough = 16;
    if (loop.kind != ForKind::serial || branch.else_case || weight(branch.then_case) < enough) return false;
    return is_clipped_by(loop.loop_var, branch.condition);
  }
  bool is_clipped_by(const Var& var, const Expr& e) const {
    if (const auto* both = e.as<And>()) return is_clipped_by(var, both->a) && is_clipped_by(var, both->b);
    const Expr margin = margin_of(e);
    return margin && !reads_memory(margin) && step_of(margin, var, known_).value_or(0) != 0;
  }

  void condition(const Expr& e) {
    if (const auto* both = e.as<And>()) {
      condition(both->a);
      condition(both->b);
      return;
    }
    if (const auto* call = e.as<Call>(); call && call->op == &intrinsic::likely) return condition(call->args[0]);
    const Expr margin = margin_of(e);
    if (!margin || !uses_var(margin, var_) || reads_memory(margin)) return;
    // A variable bound by a let is not known here.
    for (const Var& v : free_vars(margin))
      if (defined_.count(v.get())) return;
    const auto range = interval_of(known_.simplify(margin), inner_);
    if (!range) return;
    // A guard that never holds for the whole of the inner loops is no tail.
    const Expr worst = known_.simplify(range->min);
    if (!uses_var(worst, var_) || known_.const_int_bound(worst).max_value < 0) return;
    guards.push_back({e, worst, is_int(known_.simplify(range->max - range->min), 0)});
  }

  const Var& var_;
  Analyzer& known_;
  Domains inner_;
  std::unordered_set<const VarNode*> defined_;
};

// The body with the given conditions true, or false.
Stmt with_known(const Stmt& body, const std::vector<Guard>& guards, bool value) {
  std::unordered_set<const Node*> known;
  for (const Guard& guard : guards) known.insert(guard.condition.get());
  class Replacement : public TirRewriter {
   public:
    Replacement(const std::unordered_set<const Node*>& known, bool value) : known_(known), value_(value) {}

   protected:
    Expr visit_expr(Expr e) override { return known_.count(e.get()) ? boolean(value_) : children(std::move(e)); }
    const std::unordered_set<const Node*>& known_;
    bool value_;
  };
  return fold_constants(Replacement(known, value)(body));
}

class LoopPartition : public TirRewriter {
 protected:
  Stmt visit_stmt(Stmt s) override {
    if (const auto* loop = s.as<For>()) return partitioned(*loop, s);
    if (const auto* branch = s.as<IfThenElse>(); branch && !reads_memory(branch->condition)) {
      Stmt yes, no;
      {
        const Analyzer::Constraint holds(known_, branch->condition);
        yes = (*this)(branch->then_case);
      }
      if (branch->else_case) {
        const Analyzer::Constraint fails(known_, logical_not(branch->condition));
        no = (*this)(branch->else_case);
      }
      if (yes == branch->then_case && no == branch->else_case) return s;
      return make<IfThenElse>(branch->condition, yes, no);
    }
    return children(std::move(s));
  }
  Expr visit_expr(Expr e) override { return e; }

 private:
  Stmt whole(const For& loop, const Stmt& self) {
    const Analyzer::Scope inside(known_);
    known_.bind(loop.loop_var, Range{loop.min, loop.extent});
    const Stmt body = (*this)(loop.body);
    return body == loop.body ? self : Stmt(with(loop, [&](For& copy) { copy.body = body; }));
  }

  Stmt partitioned(const For& loop, const Stmt& self) {
    if (loop.kind == ForKind::vectorized || loop.kind == ForKind::thread_binding) return whole(loop, self);
    GuardSearch search(loop.loop_var, known_);
    {
      const Analyzer::Scope inside(known_);
      known_.bind(loop.loop_var, Range{loop.min, loop.extent});
      search.search(loop.body);
    }
    // Of one iteration at most, of which only the run knows where it lies, each part would be a copy for nothing.
    const bool is_single = !as_int(loop.extent) && known_.const_int_bound(loop.extent).max_value <= 1;
    if (search.guards.empty() || is_single) return whole(loop, self);
    // Iterations of a parallel loop stay one loop; so do those where the guard is not linear in the variable.
    if (loop.kind == ForKind::parallel) return versioned(loop, self, std::move(search.guards));
    return split(loop, self, search.guards);
  }

  // Each iteration chooses between a body without guards and the body as it is.
  Stmt versioned(const For& loop, const Stmt& self, std::vector<Guard> guards) {
    const int64_t cost = weight(loop.body);
    if (cost > budget_) return whole(loop, self);
    budget_ -= cost;
    const Analyzer::Scope scope(known_);
    known_.bind(loop.loop_var, Range{loop.min, loop.extent});
    Expr inside = boolean(true);
    for (const Guard& guard : guards) inside = logical_and(inside, known_.simplify(ge(guard.worst, int64(0))));
    const Stmt fast = (*this)(with_known(loop.body, guards, true)), slow = (*this)(fresh_copy(loop.body));
    const Stmt body = is_int(inside, 1) ? fast : Stmt(make<IfThenElse>(inside, fast, slow));
    return with(loop, [&](For& copy) { copy.body = body; });
  }

  // The guards that hold nowhere before those that rise do all hold, or behind where those that fall do.
  std::vector<Guard> failing(const std::vector<Guard>& guards, bool rising) {
    std::vector<Guard> found;
    for (const Guard& guard : guards) {
      const auto is_met_first = [&](const Guard& other) {
        if (other.rises != rising || other.bound == guard.bound || support::flip(partition_loops_fails)) return true;
        return known_.can_prove(rising ? le(other.bound, guard.bound) : ge(other.bound, guard.bound));
      };
      if (guard.exact && guard.rises == rising && std::all_of(guards.begin(), guards.end(), is_met_first))
        found.push_back(guard);
    }
    return found;
  }

  // What the loop does before those guards that rise hold, or behind where those that fall do; nothing where it has
  // none.
  Stmt outside(const Stmt& body, const std::vector<Guard>& guards, bool rising) {
    const auto bounds = [&](const Guard& guard) { return guard.rises == rising; };
    if (std::none_of(guards.begin(), guards.end(), bounds)) return nop();
    const std::vector<Guard> fail = failing(guards, rising);
    return fail.empty() ? body : without_no_ops(with_known(body, fail, false));
  }

  Stmt split(const For& loop, const Stmt& self, const std::vector<Guard>& found) {
    const Var& var = loop.loop_var;
    if (var->dtype != DType::int64()) return whole(loop, self);
    const Expr end = known_.simplify(loop.min + loop.extent);
    Expr low = loop.min, high = end;
    std::vector<Guard> guards;
    for (Guard guard : found) {
      const auto step = step_of(guard.worst, var, known_);
      if (!step || *step == 0) continue;
      const Expr origin = known_.simplify(substitute(guard.worst, {{var, int64(0)}}));
      // origin + step * var >= 0
      guard.rises = *step > 0;
      guard.bound = guard.rises ? floordiv(int64(*step - 1) - origin, int64(*step))
                                : floordiv(origin, int64(-*step)) + (support::flip(partition_loops_bound) ? 2 : 1);
      const Expr new_low = guard.rises ? known_.simplify(max(low, guard.bound)) : low;
      const Expr new_high = guard.rises ? high : known_.simplify(min(high, guard.bound));
      // A part that would be empty, or a guard that another already implies.
      if (known_.can_prove(ge(new_low, new_high))) continue;
      low = new_low;
      high = new_high;
      guards.push_back(std::move(guard));
    }
    // What is written out anyway does not grow, but has to have constant bounds.
    const bool written_out = loop.kind == ForKind::unrolled && as_int(loop.extent);
    if (guards.empty()) return whole(loop, self);
    const Stmt first = outside(loop.body, guards, true), last = outside(loop.body, guards, false);
    const auto growth_of = [&](const Stmt& part) { return written_out || is_nop(part) ? 0 : weight(part); };
    const int64_t growth = growth_of(first) + growth_of(last);
    if (growth > budget_) return whole(loop, self);
    // Symbolic bounds may lie anywhere: keep the parts in order and inside the loop.
    low = known_.simplify(max(loop.min, min(low, end)));
    high = known_.simplify(max(low, min(high, end)));
    if (written_out && !(as_int(known_.simplify(low - loop.min)) && as_int(known_.simplify(high - low))))
      return whole(loop, self);
    budget_ -= growth;
    const auto part = [&](const Expr& from, const Expr& to, const Stmt& body, bool main) -> Stmt {
      const Expr extent = known_.simplify(to - from);
      if (is_nop(body) || known_.can_prove(le(extent, int64(0)))) return nop();
      Stmt copy = main ? body : fresh_copy(body);
      const Var v = main ? var : Var(make<VarNode>(var->name, var->dtype));
      if (!main) copy = substitute(copy, {{var, v}});
      const Analyzer::Scope inside(known_);
      known_.bind(v, Range{from, extent});
      copy = (*this)(copy);
      return with(loop, [&](For& piece) {
        piece.loop_var = v;
        piece.min = from;
        piece.extent = extent;
        piece.body = copy;
        piece.id = main ? loop.id : 0;
      });
    };
    const Stmt before = part(loop.min, low, first, false);
    const Stmt after = part(high, end, last, false);
    const Stmt main = part(low, high, with_known(loop.body, guards, true), true);
    return seq({before, main, after});
  }

  Analyzer known_;
  int64_t budget_ = growth_budget;
};

}  // namespace

Result<IRModule> partition_loops(IRModule module, const PassContext& context) {
  return on_each_body(std::move(module), context,
                      [](const Stmt& body, const PassContext&) { return LoopPartition()(body); });
}

}  // namespace lathe::tir
