#include "support/mutation.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(lower_intrinsics_likely, "tir_test", "a condition marked likely is taken for true");

namespace {

class IntrinsicLowering : public TirRewriter {
 protected:
  Expr visit_expr(Expr e) override {
    Expr rewritten = children(std::move(e));
    const auto* call = rewritten.as<Call>();
    if (!call) return rewritten;
    if (call->op == &intrinsic::likely) {
      if (support::flip(lower_intrinsics_likely)) return constant(call->dtype, int64_t{1});
      return call->args[0];
    }
    // Rounding an integer changes nothing.
    const Intrinsic* const rounding[] = {&intrinsic::ceil, &intrinsic::floor, &intrinsic::round, &intrinsic::nearbyint,
                                         &intrinsic::trunc};
    if (!call->dtype.is_floating() && !call->args.empty() && call->args[0]->dtype == call->dtype &&
        std::find(std::begin(rounding), std::end(rounding), call->op) != std::end(rounding))
      return call->args[0];
    return rewritten;
  }
  Stmt visit_stmt(Stmt s) override {
    Stmt rewritten = children(std::move(s));
    // A promise that reasoning has used.
    if (const auto* evaluate = rewritten.as<Evaluate>())
      if (const auto* call = evaluate->value.as<Call>(); call && call->op == &intrinsic::assume) return nop();
    return rewritten;
  }
};

}  // namespace

Result<IRModule> lower_intrinsics(IRModule module, const PassContext& context) {
  return on_each_body(std::move(module), context,
                      [](const Stmt& body, const PassContext&) { return IntrinsicLowering()(body); });
}

}  // namespace lathe::tir
