#include "arith/analyzer.h"
#include "support/mutation.h"
#include "tir/codes.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(narrow_dtypes_end, "tir_test", "the last values of an index count as if they fitted");

namespace {

using arith::Analyzer;
using arith::ConstIntBound;

constexpr int64_t narrow_bits = 32;

// Loop variables and what is made of them for subscripts, bounds and comparisons, where all of it, on the way too, is
// shown to fit. Values keep their width: they wrap at it.
class Narrowing : public TirRewriter {
 protected:
  Stmt visit_stmt(Stmt s) override {
    if (const auto* realize = s.as<BlockRealize>())
      throw support::DiagnosticError(support::Diagnostic{
          .code = codes::illegal_after_stage,
          .message = fmt::format("block '{}' says what it touches in the widths that its variables have",
                                 realize->block->name),
          .help = "run LowerOpaqueBlock before"});
    if (const auto* loop = s.as<For>()) return narrowed(*loop, s);
    if (const auto* store = s.as<BufferStore>())
      return with(*store, [&](BufferStore& copy) {
        copy.value = (*this)(store->value);
        for (Expr& index : copy.indices) index = subscript(index);
        copy.predicate = (*this)(store->predicate);
      });
    if (const auto* let = s.as<LetStmt>(); let && let->var->dtype == DType::int64()) {
      const Expr value = (*this)(let->value);
      known_.update(let->var, known_.const_int_bound(let->value));
      return with(*let, [&](LetStmt& copy) {
        copy.value = value;
        copy.body = (*this)(let->body);
      });
    }
    if (const auto* branch = s.as<IfThenElse>()) {
      const Expr condition = (*this)(branch->condition);
      return with(*branch, [&](IfThenElse& copy) {
        copy.condition = condition;
        copy.then_case = (*this)(branch->then_case);
        copy.else_case = (*this)(branch->else_case);
      });
    }
    return children(std::move(s));
  }

  Expr visit_expr(Expr e) override {
    if (const auto* load = e.as<BufferLoad>())
      return with(*load, [&](BufferLoad& copy) {
        for (Expr& index : copy.indices) index = subscript(index);
        copy.predicate = (*this)(load->predicate);
      });
    // Both sides of a comparison, or none.
    if (const Expr compared = comparison<LT>(e)) return compared;
    if (const Expr compared = comparison<LE>(e)) return compared;
    if (const Expr compared = comparison<GT>(e)) return compared;
    if (const Expr compared = comparison<GE>(e)) return compared;
    if (const Expr compared = comparison<EQ>(e)) return compared;
    if (const Expr compared = comparison<NE>(e)) return compared;
    return children(std::move(e));
  }

 private:
  Stmt narrowed(const For& loop, const Stmt& self) {
    const bool scalar = loop.loop_var->dtype == DType::int64() && loop.kind != ForKind::thread_binding;
    // The variable steps to the first value that is too large, so that one must fit too.
    const bool fits_narrow = scalar && fits(loop.min) && fits(loop.extent) && fits(add(loop.min, loop.extent));
    const Expr min = fits_narrow ? narrow(loop.min) : Expr(), extent = fits_narrow ? narrow(loop.extent) : Expr();
    const bool changes = min && extent;
    const Expr begin = changes ? min : (*this)(loop.min), count = changes ? extent : (*this)(loop.extent);
    const Analyzer::Scope inside(known_);
    known_.bind(loop.loop_var, Range{loop.min, loop.extent});
    const Var var = changes ? make<VarNode>(loop.loop_var->name, DType::int_(narrow_bits)) : loop.loop_var;
    if (changes) narrow_[loop.loop_var.get()] = var;
    Stmt body = (*this)(loop.body);
    // Where the variable is left, it is a value, or part of what does not fit.
    if (changes) body = substitute(body, {{loop.loop_var, cast(loop.loop_var->dtype, var)}});
    if (!changes && begin == loop.min && count == loop.extent && body == loop.body) return self;
    return with(loop, [&](For& copy) {
      copy.loop_var = var;
      copy.min = begin;
      copy.extent = count;
      copy.body = body;
    });
  }

  bool fits(const Expr& e) {
    const ConstIntBound bound = known_.const_int_bound(e);
    const int64_t limit = int64_t{1} << (narrow_bits - 1);
    const int64_t slack = support::flip(narrow_dtypes_end) ? int64_t{1} << narrow_bits : 0;
    return bound.min_value >= -limit - slack && bound.max_value < limit + slack;
  }

  // The expression in the narrow type; null where it, or a part of it, is not shown to fit.
  Expr narrow(const Expr& e) {
    const DType to = DType::int_(narrow_bits);
    if (e->dtype != DType::int64() || !fits(e)) return {};
    if (const auto value = as_int(e)) return constant(to, *value);
    if (const auto* var = e.as<VarNode>()) {
      const auto it = narrow_.find(var);
      return it == narrow_.end() ? cast(to, e) : Expr(it->second);
    }
    if (const auto* n = e.as<Add>()) return of_two<Add>(*n);
    if (const auto* n = e.as<Sub>()) return of_two<Sub>(*n);
    if (const auto* n = e.as<Mul>()) return of_two<Mul>(*n);
    if (const auto* n = e.as<FloorDiv>()) return of_two<FloorDiv>(*n);
    if (const auto* n = e.as<FloorMod>()) return of_two<FloorMod>(*n);
    if (const auto* n = e.as<Div>()) return of_two<Div>(*n);
    if (const auto* n = e.as<Mod>()) return of_two<Mod>(*n);
    if (const auto* n = e.as<Min>()) return of_two<Min>(*n);
    if (const auto* n = e.as<Max>()) return of_two<Max>(*n);
    if (const auto* n = e.as<Select>()) {
      const Expr a = narrow(n->true_value), b = narrow(n->false_value);
      return a && b ? Expr(make<Select>((*this)(n->condition), a, b)) : Expr();
    }
    // What a narrower number is, it stays.
    const auto* n = e.as<Cast>();
    return n && n->value->dtype.is_integer() && n->value->dtype.bits <= narrow_bits ? cast(to, (*this)(n->value))
                                                                                    : Expr();
  }
  template <class Kind>
  Expr of_two(const Kind& n) {
    const Expr a = narrow(n.a), b = a ? narrow(n.b) : Expr();
    return b ? Expr(make<Kind>(a, b)) : Expr();
  }

  // A subscript is a mathematical integer: its type says nothing but how far it may reach.
  Expr subscript(const Expr& e) {
    if (const auto* ramp = e.as<Ramp>(); ramp && e->dtype.element() == DType::int64()) {
      const Expr last = add(ramp->base, mul(ramp->stride, constant(ramp->stride->dtype, ramp->lanes - 1)));
      const Expr base = narrow(ramp->base), stride = narrow(ramp->stride);
      if (base && stride && fits(last)) return make<Ramp>(base, stride, ramp->lanes);
    }
    const Expr small = narrow(e);
    return small ? small : (*this)(e);
  }

  template <class Kind>
  Expr comparison(const Expr& e) {
    const auto* n = e.as<Kind>();
    if (!n || n->a->dtype != DType::int64()) return {};
    const Expr a = narrow(n->a), b = a ? narrow(n->b) : Expr();
    return b ? Expr(make<Kind>(a, b)) : Expr();
  }

  Analyzer known_;
  std::unordered_map<const VarNode*, Var> narrow_;
};

}  // namespace

Result<IRModule> narrow_dtypes(IRModule module, const PassContext&) {
  return on_each_body(std::move(module), [](const Stmt& body) { return Narrowing()(body); });
}

}  // namespace lathe::tir
