#include "support/mutation.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(legalize_dtypes_rounding, "tir_test", "bfloat16 results are rounded through float16");

namespace {

bool is_narrow(DType t) { return t.is_floating() && t.bits < 32; }

// An operation on floats of 16 bits and fewer becomes the operation on float32 between conversions: float32 holds the
// exact operands, and for + - * / and sqrt rounding twice gives what rounding once does (24 >= 2 * 11 + 2 bits).
class NarrowArithmetic : public TirRewriter {
 protected:
  Expr visit_expr(Expr e) override { return match_binary(children(std::move(e))); }

 private:
  static Expr wide(const Expr& e) {
    if (!is_narrow(e->dtype)) return e;
    // A conversion of what was just rounded stays: the rounding is part of the meaning.
    return cast(DType::float_(32, e->dtype.lanes), e);
  }

  static Expr rounded(const Expr& e, DType dtype) {
    if (support::flip(legalize_dtypes_rounding) && dtype.is_bfloat16() && dtype.is_scalar())
      return cast(dtype, cast(DType::float_(16), e));
    return cast(dtype, e);
  }

  template <class... Kinds>
  static Expr widened_binary(const Expr& e) {
    Expr result = e;
    const auto attempt = [&]<class Kind>(const Kind* n) {
      if (!n || !is_narrow(n->a->dtype)) return;
      const Expr whole = make<Kind>(wide(n->a), wide(n->b));
      result = whole->dtype.is_bool() ? whole : rounded(whole, e->dtype);
    };
    (attempt(e.template as<Kinds>()), ...);
    return result;
  }

  static Expr match_binary(const Expr& e) {
    if (const auto* call = e.as<Call>()) return widened_call(*call, e);
    return widened_binary<Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, EQ, NE, LT, LE, GT, GE>(e);
  }

  static Expr widened_call(const Call& n, const Expr& e) {
    const Intrinsic* const moves[] = {&intrinsic::if_then_else, &intrinsic::reinterpret,
                                      &intrinsic::undef,        &intrinsic::likely,
                                      &intrinsic::address_of,   &intrinsic::call_llvm_pure_intrin,
                                      &intrinsic::nextafter,    &intrinsic::tvm_stack_make_array};
    if (n.op->effect != Effect::pure || std::find(std::begin(moves), std::end(moves), n.op) != std::end(moves))
      return e;
    bool any = is_narrow(n.dtype);
    std::vector<Expr> args;
    for (const Expr& arg : n.args) {
      any = any || is_narrow(arg->dtype);
      args.push_back(wide(arg));
    }
    if (!any) return e;
    if (!is_narrow(n.dtype)) return make<Call>(n.dtype, n.op, std::move(args));
    if (n.op == &intrinsic::vector_reduce_add) return stepwise_sum(n);
    if (n.op == &intrinsic::rsqrt) {
      // Rounded as the two operations, in the narrow dtype.
      const Expr root = rounded(make<Call>(args[0]->dtype, &intrinsic::sqrt, args), n.dtype);
      return rounded(div(constant(args[0]->dtype, 1), wide(root)), n.dtype);
    }
    return rounded(make<Call>(DType::float_(32, n.dtype.lanes), n.op, std::move(args)), n.dtype);
  }

  // Each partial sum is rounded, as the narrow dtype would.
  static Expr stepwise_sum(const Call& n) {
    const int lanes = n.args[0]->dtype.lanes;
    const Var vector = var("lanes", n.args[0]->dtype);
    const auto lane = [&](int k) -> Expr { return make<Shuffle>(std::vector<Expr>{vector}, std::vector<int64_t>{k}); };
    Expr total = lane(0);
    for (int k = 1; k < lanes; ++k) total = rounded(add(wide(total), wide(lane(k))), n.dtype);
    return make<Let>(vector, n.args[0], total);
  }
};

}  // namespace

Result<IRModule> legalize_dtypes(IRModule module, const PassContext& context) {
  return on_each_body(std::move(module), context,
                      [](const Stmt& body, const PassContext&) { return NarrowArithmetic()(body); });
}

}  // namespace lathe::tir
