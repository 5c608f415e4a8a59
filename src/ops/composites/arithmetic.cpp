// Arithmetic that is made of arithmetic.
#include "ops/composites/expansion.h"

namespace lathe::ops::composites {

namespace {

Value expand_square(const Expansion& e) { return e.call(ops::multiply, {e.tensor(0), e.tensor(0)}); }

// Toward zero. Integers are as they are.
Value expand_trunc(const Expansion& e) {
  const Value& x = e.tensor(0);
  if (!build::dtype_of(x).is_floating()) return x;
  const Value below = e.call(ops::floor, {x}), above = e.call(ops::ceil, {x});
  const Value is_negative = e.call(ops::less, {x, build::scalar(build::dtype_of(x), 0)});
  return e.call(ops::where, {is_negative, above, below});
}

}  // namespace

const Operator square = composite("square", {{"x"}}, nullptr, expand_square, "numpy.square(x)");
const Operator trunc = composite("trunc", {{"x"}}, nullptr, expand_trunc, "numpy.trunc(x)");

}  // namespace lathe::ops::composites
