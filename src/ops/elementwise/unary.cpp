// Functions of one tensor. Transcendental functions of floats narrower than float32 are computed in float32.
#include "ops/elementwise/elementwise.h"
#include "ops/gradient/gradient.h"

namespace lathe::ops {

using enum DTypeSet;

namespace {

Operator float_function(std::string_view name, const ir::Intrinsic& intrinsic, std::string_view reference) {
  return unary(
      name, floating,
      [&intrinsic](const Expr& x) { return in_float32(x, [&](const Expr& y) { return ir::call(intrinsic, y); }); },
      reference);
}

Expr negated(const Expr& x) {
  // Of floats the sign bit is flipped: 0 - x would make 0 of 0.
  return x->dtype.is_floating() ? x * ir::constant(x->dtype, -1) : 0 - x;
}

Expr absolute(const Expr& x) {
  if (x->dtype.is_uint()) return x;
  if (x->dtype.is_int()) return ir::max(x, 0 - x);
  return in_float32(x, [](const Expr& y) { return ir::call(ir::intrinsic::abs, y); });
}

// -1, 0 or 1; zeros lose their sign, NaN stays.
Expr sign_of(const Expr& x) {
  const Expr zero = ir::constant(x->dtype, 0), one = ir::constant(x->dtype, 1);
  if (x->dtype.is_uint()) return ir::select(x > zero, one, zero);
  const Expr not_positive = ir::select(x < zero, ir::constant(x->dtype, -1), ir::select(ir::eq(x, zero), zero, x));
  return ir::select(x > zero, one, not_positive);
}

}  // namespace

const Operator negative = unary("negative", numeric, negated, "-x", gradient_of_negative);
const Operator abs = unary("abs", numeric, absolute, "numpy.abs(x)");
const Operator sign = unary("sign", numeric, sign_of, "numpy.sign(x)");
const Operator floor = float_function("floor", ir::intrinsic::floor, "numpy.floor(x)");
const Operator ceil = float_function("ceil", ir::intrinsic::ceil, "numpy.ceil(x)");
// Halves to even.
const Operator round = float_function("round", ir::intrinsic::nearbyint, "numpy.round(x)");
const Operator sqrt = float_function("sqrt", ir::intrinsic::sqrt, "numpy.sqrt(x)");
const Operator rsqrt = float_function("rsqrt", ir::intrinsic::rsqrt, "1 / numpy.sqrt(x)");
const Operator exp = float_function("exp", ir::intrinsic::exp, "numpy.exp(x)");
const Operator log = float_function("log", ir::intrinsic::log, "numpy.log(x)");
const Operator sin = float_function("sin", ir::intrinsic::sin, "numpy.sin(x)");
const Operator cos = float_function("cos", ir::intrinsic::cos, "numpy.cos(x)");
const Operator tan = float_function("tan", ir::intrinsic::tan, "numpy.tan(x)");
const Operator acos = float_function("acos", ir::intrinsic::acos, "numpy.arccos(x)");
const Operator asin = float_function("asin", ir::intrinsic::asin, "numpy.arcsin(x)");
const Operator atan = float_function("atan", ir::intrinsic::atan, "numpy.arctan(x)");
const Operator cosh = float_function("cosh", ir::intrinsic::cosh, "numpy.cosh(x)");
const Operator sinh = float_function("sinh", ir::intrinsic::sinh, "numpy.sinh(x)");
const Operator acosh = float_function("acosh", ir::intrinsic::acosh, "numpy.arccosh(x)");
const Operator asinh = float_function("asinh", ir::intrinsic::asinh, "numpy.arcsinh(x)");
const Operator atanh = float_function("atanh", ir::intrinsic::atanh, "numpy.arctanh(x)");
const Operator tanh = float_function("tanh", ir::intrinsic::tanh, "numpy.tanh(x)");
const Operator erf = float_function("erf", ir::intrinsic::erf, "scipy.special.erf(x)");
const Operator sigmoid = float_function("sigmoid", ir::intrinsic::sigmoid, "1 / (1 + numpy.exp(-x))");

}  // namespace lathe::ops
