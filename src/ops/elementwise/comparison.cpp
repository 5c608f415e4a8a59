// Comparisons, logic on bool tensors, classes of numbers, and choice.
#include "ops/elementwise/elementwise.h"

namespace lathe::ops {

using enum DTypeSet;

const Operator equal = binary("equal", any, ir::eq, "a == b", true);
const Operator not_equal = binary("not_equal", any, ir::ne, "a != b", true);
const Operator less = binary("less", numeric, ir::lt, "a < b", true);
const Operator less_equal = binary("less_equal", numeric, ir::le, "a <= b", true);
const Operator greater = binary("greater", numeric, ir::gt, "a > b", true);
const Operator greater_equal = binary("greater_equal", numeric, ir::ge, "a >= b", true);
const Operator logical_and = binary("logical_and", boolean, ir::logical_and, "numpy.logical_and(a, b)", true);
const Operator logical_or = binary("logical_or", boolean, ir::logical_or, "numpy.logical_or(a, b)", true);
const Operator logical_xor = binary("logical_xor", boolean, ir::ne, "numpy.logical_xor(a, b)", true);
const Operator logical_not = unary("logical_not", boolean, ir::logical_not, "numpy.logical_not(x)");

namespace {

Operator number_class(std::string_view name, const ir::Intrinsic& intrinsic, std::string_view reference) {
  Operator op = unary(
      name, floating,
      [&intrinsic](const Expr& x) {
        return ir::call(DType::boolean(), intrinsic, {ir::cast(relax::accumulation_dtype(x->dtype), x)});
      },
      reference);
  op.infer = [](const InferContext& c) -> Result<StructInfo> {
    TRY(relax::check_dtype(c, 0, floating));
    return relax::broadcast_arguments(c, DType::boolean());
  };
  return op;
}

Result<StructInfo> infer_where(const InferContext& c) {
  TRY(relax::check_dtype(c, 0, boolean));
  TRY(relax::check_same_dtype(c, 1, 2));
  return relax::broadcast_arguments(c, c.tensor(1)->dtype);
}

std::vector<te::Tensor> lower_where(const LowerContext& c) {
  return {te::topi::map(
      {c.tensor(0), c.tensor(1), c.tensor(2)}, *c.output().shape,
      [](const std::vector<Expr>& v) { return ir::select(v[0], v[1], v[2]); }, "where")};
}

}  // namespace

const Operator isnan = number_class("isnan", ir::intrinsic::isnan, "numpy.isnan(x)");
const Operator isinf = number_class("isinf", ir::intrinsic::isinf, "numpy.isinf(x)");
const Operator isfinite = number_class("isfinite", ir::intrinsic::isfinite, "numpy.isfinite(x)");

// condition ? a : b, broadcast.
const Operator where{
    .name = "where",
    .inputs = {{"condition"}, {"a"}, {"b"}},
    .infer = infer_where,
    .meaning = relax::TeExpression(lower_where),
    .fusion = FusionKind::broadcast,
    .reference = "numpy.where(condition, a, b)",
};

}  // namespace lathe::ops
