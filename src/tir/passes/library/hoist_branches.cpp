#include "arith/analyzer.h"
#include "support/mutation.h"
#include "tir/analysis/effects.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(hoist_branches_else, "tir_test", "the loop of the other case is forgotten");
LATHE_FAULT(hoist_branches_written, "tir_test", "a condition leaves a loop that changes what it reads");

namespace {

class BranchHoisting : public TirRewriter {
 public:
  explicit BranchHoisting(const PassContext& context) : context_(context) {}

 protected:
  Stmt visit_stmt(Stmt s) override {
    if (const auto* block = s.as<Block>()) {
      // Memory may have two names under views: what a load reads is then not seen from the stores.
      const bool outside = std::exchange(views_, views_ || !block->match_buffers.empty());
      Stmt result = children(std::move(s));
      views_ = outside;
      return result;
    }
    const auto* loop = s.as<For>();
    if (!loop || loop->kind == ForKind::thread_binding) return children(std::move(s));
    Stmt rewritten;
    {
      // What the domain implies holds inside the loop alone: outside, it may be empty.
      const arith::Analyzer::Scope inside(known_);
      known_.bind(loop->loop_var, Range{loop->min, loop->extent});
      rewritten = children(s);
    }
    return hoisted(rewritten);
  }

 private:
  // The if that a loop's body comes to, under what stands around it there.
  static const IfThenElse* branch_in(const Stmt& body, std::vector<Stmt>& around) {
    if (const auto* branch = body.as<IfThenElse>()) return branch;
    const auto* let = body.as<LetStmt>();
    const auto* attribute = body.as<AttrStmt>();
    if (!let && !attribute) return nullptr;
    around.push_back(body);
    return branch_in(let ? let->body : attribute->body, around);
  }

  static Stmt under(const std::vector<Stmt>& around, Stmt body) {
    for (size_t k = around.size(); k-- > 0;) {
      if (const auto* let = around[k].as<LetStmt>())
        body = with(*let, [&](LetStmt& copy) { copy.body = body; });
      else if (const auto* attribute = around[k].as<AttrStmt>())
        body = with(*attribute, [&](AttrStmt& copy) { copy.body = body; });
    }
    return body;
  }

  Stmt hoisted(const Stmt& s) {
    const For& loop = *s.as<For>();
    std::vector<Stmt> around;
    const IfThenElse* branch = branch_in(loop.body, around);
    if (!branch) return s;
    const auto [outside, inside] = parts(loop, around, *branch);
    if (!outside) return s;
    // What is left of the condition stays in the loop; then there is no other case (see `parts`).
    const Stmt yes = inside ? Stmt(make<IfThenElse>(inside, branch->then_case, Stmt())) : branch->then_case;
    const Stmt first = with(loop, [&](For& copy) { copy.body = under(around, yes); });
    Stmt second;
    if (branch->else_case && !support::flip(hoist_branches_else))
      second = fresh_copy(with(loop, [&](For& copy) { copy.body = under(around, branch->else_case); }));
    return make<IfThenElse>(outside, first, second);
  }

  struct Parts {
    Expr outside, inside;  // null: nothing of it
  };
  // What of the condition may be asked before the loop, and what may not. Where there is another case, all or nothing.
  Parts parts(const For& loop, const std::vector<Stmt>& around, const IfThenElse& branch) {
    Parts found;
    const std::function<void(const Expr&)> sort = [&](const Expr& condition) {
      if (const auto* both = condition.as<And>(); both && !branch.else_case) {
        sort(both->a);
        sort(both->b);
        return;
      }
      Expr& part = stays_the_same(condition, loop, around) ? found.outside : found.inside;
      part = part ? logical_and(part, condition) : condition;
    };
    sort(branch.condition);
    return found;
  }

  bool stays_the_same(const Expr& condition, const For& loop, const std::vector<Stmt>& around) {
    if (as_int(condition) || uses_var(condition, loop.loop_var)) return false;
    for (const Stmt& each : around)
      if (const auto* let = each.as<LetStmt>(); let && uses_var(condition, let->var)) return false;
    const Effects effects = effects_of(condition);
    if (effects.updates) return false;
    if (is_total(condition)) return true;
    // Where it may have no value, the loop must be certain to ask for it first of all.
    if (!around.empty()) return kept(loop, "its condition may have no value, and is not the first that is evaluated");
    if (!known_.can_prove(gt(loop.extent, constant(loop.extent->dtype, 0))))
      return kept(loop, "its condition may have no value, and the loop may not run at all");
    const bool changes = views_ || has_views(loop.body) || reads_written(condition, writes_of(loop.body));
    if (effects.reads && changes && !support::flip(hoist_branches_written))
      return kept(loop, "the loop may change what its condition reads");
    return true;
  }

  static bool has_views(const Stmt& s) {
    bool found = false;
    pre_order(s, [&](const NodeRef& n) {
      found = found || n.is<MatchBufferRegionNode>();
      return !found && n->node_class().family != ExprNode::family;
    });
    return found;
  }

  bool kept(const For& loop, std::string reason) {
    context_.remark("hoist_branches", loop.loop_var->name, std::move(reason));
    return false;
  }

  const PassContext& context_;
  arith::Analyzer known_;
  bool views_ = false;
};

}  // namespace

Result<IRModule> hoist_branches(IRModule module, const PassContext& context) {
  return on_each_body(std::move(module), [&](const Stmt& body) { return BranchHoisting(context)(body); });
}

}  // namespace lathe::tir
