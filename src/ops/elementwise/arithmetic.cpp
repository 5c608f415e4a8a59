// Arithmetic of two tensors. Integers wrap; integer division truncates.
#include "ops/elementwise/elementwise.h"
#include "ops/gradient/gradient.h"

namespace lathe::ops {

using enum DTypeSet;

const Operator add = binary("add", numeric, ir::add, "a + b", false, gradient_of_add);
const Operator subtract = binary("subtract", numeric, ir::sub, "a - b", false, gradient_of_subtract);
const Operator multiply = binary("multiply", numeric, ir::mul, "a * b", false, gradient_of_multiply);
const Operator divide =
    binary("divide", numeric, ir::div, "a / b if floating else numpy.trunc(a / b)", false, gradient_of_divide);
const Operator power = binary(
    "power", numeric,
    [](const Expr& a, const Expr& b) {
      const DType wide = relax::accumulation_dtype(a->dtype);
      return ir::cast(a->dtype, ir::call(wide, ir::intrinsic::pow, {ir::cast(wide, a), ir::cast(wide, b)}));
    },
    "numpy.power(a, b)");
const Operator mod = binary("mod", numeric, ir::mod, "numpy.fmod(a, b)");
const Operator floor_mod = binary("floor_mod", numeric, ir::floormod, "numpy.mod(a, b)");
// NaN where an operand is NaN.
const Operator minimum = binary("minimum", numeric, ir::min, "numpy.minimum(a, b)");
const Operator maximum = binary("maximum", numeric, ir::max, "numpy.maximum(a, b)");

}  // namespace lathe::ops
