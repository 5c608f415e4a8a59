#include "arith/analyzer.h"
#include "support/mutation.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(simplify_domain, "tir_test", "a loop variable is believed not to reach its last value");

namespace {

using arith::Analyzer;

// Whether what a condition says stays true while the statements under it run: nothing that it reads can be written.
bool is_lasting(const Expr& condition) {
  bool lasting = condition->dtype.is_scalar();
  post_order(condition, [&](const NodeRef& n) {
    lasting = lasting && !n.is<BufferLoad>();
    if (const auto* call = n.as<Call>()) lasting = lasting && call->op->effect == Effect::pure;
  });
  return lasting;
}

class Simplification : public TirRewriter {
 protected:
  Expr visit_expr(Expr e) override { return known_.simplify(e); }

  Stmt visit_stmt(Stmt s) override {
    if (const auto* loop = s.as<For>()) return simplified(*loop, s);
    if (const auto* branch = s.as<IfThenElse>()) return simplified(*branch);
    if (const auto* realize = s.as<BlockRealize>()) return simplified(*realize);
    if (const auto* store = s.as<BufferStore>()) {
      const Expr value = known_.simplify_value(store->value);
      std::vector<Expr> indices = store->indices;
      for (Expr& index : indices) index = known_.simplify(index);
      const Expr predicate = store->predicate ? known_.simplify(store->predicate) : Expr();
      if (value == store->value && indices == store->indices && predicate == store->predicate) return s;
      return with(*store, [&](BufferStore& copy) {
        copy.value = value;
        copy.indices = std::move(indices);
        copy.predicate = predicate && is_int(predicate, 1) ? Expr() : predicate;
      });
    }
    if (const auto* let = s.as<LetStmt>()) {
      const Expr value = known_.simplify_value(let->value);
      if (let->var->dtype == DType::int64()) known_.update(let->var, known_.const_int_bound(value));
      const Stmt body = (*this)(let->body);
      if (value == let->value && body == let->body) return s;
      return with(*let, [&](LetStmt& copy) {
        copy.value = value;
        copy.body = body;
      });
    }
    if (const auto* check = s.as<AssertStmt>()) {
      const Expr condition = known_.simplify(check->condition);
      if (is_int(condition, 1)) return nop();
      return condition == check->condition ? s : Stmt(make<AssertStmt>(condition, check->message));
    }
    if (const auto* evaluate = s.as<Evaluate>()) return s.same_as(nop()) || as_int(evaluate->value) ? s : children(s);
    if (const auto* repeat = s.as<While>()) {
      const Stmt body = (*this)(repeat->body);
      return body == repeat->body ? s : Stmt(make<While>(repeat->condition, body));
    }
    if (const auto* sequence = s.as<SeqStmt>()) {
      std::vector<Stmt> all;
      bool changed = false;
      for (const Stmt& each : sequence->seq) {
        all.push_back((*this)(each));
        changed |= all.back() != each;
      }
      return changed ? seq(std::move(all)) : s;
    }
    Stmt rewritten = children(std::move(s));
    if (const auto* allocate = rewritten.as<Allocate>(); allocate && is_nop(allocate->body)) return allocate->body;
    return rewritten;
  }

 private:
  Stmt simplified(const For& loop, const Stmt& self) {
    const Expr min = known_.simplify(loop.min), extent = known_.simplify(loop.extent);
    if (known_.can_prove(le(extent, constant(extent->dtype, 0)))) return nop();
    if (is_int(extent, 1) && loop.kind != ForKind::thread_binding)
      return (*this)(substitute(loop.body, {{loop.loop_var, min}}));
    // What the domain implies of variables further out holds only inside: an empty loop implies nothing.
    const Analyzer::Scope inside(known_);
    const bool shorter = support::flip(simplify_domain);
    known_.bind(loop.loop_var, Range{min, shorter ? sub(extent, constant(extent->dtype, 1)) : extent});
    Stmt body;
    {
      // The body runs only where there is an iteration.
      const Analyzer::Constraint some(known_, gt(extent, constant(extent->dtype, 0)));
      body = (*this)(loop.body);
    }
    if (is_nop(body)) return body;
    if (min == loop.min && extent == loop.extent && body == loop.body) return self;
    return with(loop, [&](For& copy) {
      copy.min = min;
      copy.extent = extent;
      copy.body = body;
    });
  }

  Stmt simplified(const IfThenElse& branch) {
    const Expr condition = known_.simplify(branch.condition);
    if (const auto holds = as_int(condition)) {
      if (*holds) return (*this)(branch.then_case);
      return branch.else_case ? (*this)(branch.else_case) : nop();
    }
    const bool lasting = is_lasting(condition);
    const auto under = [&](const Expr& assumption, const Stmt& body) {
      if (!body) return body;
      if (!lasting) return (*this)(body);
      const Analyzer::Constraint holds(known_, assumption);
      return (*this)(body);
    };
    const Stmt yes = under(condition, branch.then_case), no = under(logical_not(condition), branch.else_case);
    const bool without_else = !no || is_nop(no);
    if (is_nop(yes) && without_else) return nop();
    if (is_nop(yes)) return make<IfThenElse>(known_.simplify(logical_not(condition)), no);
    return make<IfThenElse>(condition, yes, without_else ? Stmt() : no);
  }

  Stmt simplified(const BlockRealize& realize) {
    std::vector<Expr> values = realize.iter_values;
    for (Expr& value : values) value = known_.simplify(value);
    const Expr predicate = known_.simplify(realize.predicate);
    if (is_int(predicate, 0)) return nop();
    const Analyzer::Scope inside(known_);
    for (const IterVar& iter : realize.block->iter_vars) known_.bind(iter->var, iter->dom);
    // The block keeps its variables and regions: only statements inside are simplified.
    const Stmt body = (*this)(realize.block->body);
    const Stmt init = realize.block->init ? (*this)(realize.block->init) : Stmt();
    return with(realize, [&](BlockRealize& copy) {
      copy.iter_values = values;
      copy.predicate = predicate;
      if (body != realize.block->body || init != realize.block->init)
        copy.block = with(*realize.block, [&](Block& inner) {
          inner.body = body;
          inner.init = init;
        });
    });
  }

  Analyzer known_;
};

}  // namespace

Result<IRModule> simplify(IRModule module, const PassContext& context) {
  return on_each_body(std::move(module), context,
                      [](const Stmt& body, const PassContext&) { return Simplification()(body); });
}

}  // namespace lathe::tir
