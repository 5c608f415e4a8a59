// Activation functions. Formulas of several steps are computed in float32 where the tensor is of a narrower float.
#include "ops/attributes.h"
#include "ops/elementwise/elementwise.h"

namespace lathe::ops {

using enum DTypeSet;

namespace {

Expr number(const Expr& x, double value) { return ir::constant(x->dtype, value); }
Expr zero_of(const Expr& x) { return ir::constant(x->dtype, 0); }
Expr exp_of(const Expr& x) { return ir::call(ir::intrinsic::exp, x); }

Expr leaky(const Expr& x, const LeakyReluAttributes& a) {
  return in_float32(x, [&](const Expr& y) { return ir::select(y < zero_of(y), number(y, a.alpha) * y, y); });
}

Expr exponential_linear(const Expr& x, const EluAttributes& a) {
  return in_float32(
      x, [&](const Expr& y) { return ir::select(y < zero_of(y), number(y, a.alpha) * (exp_of(y) - number(y, 1)), y); });
}

Expr scaled_exponential_linear(const Expr& x, const SeluAttributes& a) {
  return in_float32(x, [&](const Expr& y) {
    const Expr negative_part = number(y, a.alpha) * exp_of(y) - number(y, a.alpha);
    return number(y, a.gamma) * ir::select(y > zero_of(y), y, negative_part);
  });
}

Expr hard_sigmoid_of(const Expr& y, double alpha, double beta) {
  return ir::max(zero_of(y), ir::min(number(y, 1), number(y, alpha) * y + number(y, beta)));
}
Expr hard_sigmoid_with(const Expr& x, const HardSigmoidAttributes& a) {
  return in_float32(x, [&](const Expr& y) { return hard_sigmoid_of(y, a.alpha, a.beta); });
}

// log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)): exact for large x.
Expr softplus_of(const Expr& x) {
  return in_float32(x, [](const Expr& y) {
    const Expr magnitude = ir::call(ir::intrinsic::abs, y);
    return ir::max(y, zero_of(y)) + ir::call(ir::intrinsic::log1p, exp_of(number(y, -1) * magnitude));
  });
}

Expr gelu_of(const Expr& x) {
  return in_float32(x, [](const Expr& y) {
    const Expr erf_of = ir::call(ir::intrinsic::erf, y * number(y, 0.70710678118654752440));
    return number(y, 0.5) * y * (erf_of + number(y, 1));
  });
}

// Hendrycks and Gimpel's approximation.
Expr gelu_tanh_of(const Expr& x) {
  return in_float32(x, [](const Expr& y) {
    const Expr inner = number(y, 0.79788456080286535588) * (y + number(y, 0.044715) * y * y * y);
    return number(y, 0.5) * y * (ir::call(ir::intrinsic::tanh, inner) + number(y, 1));
  });
}

Result<StructInfo> infer_prelu(const InferContext& c) {
  TRY(relax::check_dtype(c, 0, numeric));
  TRY(relax::check_same_dtype(c, 0, 1));
  const auto &x = *c.tensor(0), &slope = *c.tensor(1);
  if (x.shape && slope.shape && !relax::broadcasts_to(*slope.shape, *x.shape, c.assumptions))
    return relax::wrong(relax::codes::cannot_broadcast,
                        "cannot broadcast the slope " + relax::text_of(slope) + " to " + relax::text_of(x));
  return c.args[0]->struct_info;
}

std::vector<te::Tensor> lower_prelu(const LowerContext& c) {
  return {te::topi::map(
      {c.tensor(0), c.tensor(1)}, *c.output().shape,
      [](const std::vector<Expr>& v) { return ir::select(v[0] < zero_of(v[0]), v[1] * v[0], v[0]); }, "prelu")};
}

}  // namespace

// NaN stays NaN.
const Operator relu =
    unary("nn.relu", numeric, [](const Expr& x) { return ir::max(x, zero_of(x)); }, "numpy.maximum(x, 0)");
const Operator leakyrelu = unary_with("nn.leakyrelu", floating, leaky, "numpy.where(x < 0, alpha * x, x)");
const Operator elu =
    unary_with("nn.elu", floating, exponential_linear, "numpy.where(x < 0, alpha * numpy.expm1(x), x)");
const Operator selu =
    unary_with("nn.selu", floating, scaled_exponential_linear, "gamma * numpy.where(x > 0, x, alpha * numpy.expm1(x))");
const Operator hard_sigmoid =
    unary_with("nn.hard_sigmoid", floating, hard_sigmoid_with, "numpy.clip(alpha * x + beta, 0, 1)");
const Operator hard_swish = unary(
    "nn.hard_swish", floating,
    [](const Expr& x) { return in_float32(x, [](const Expr& y) { return y * hard_sigmoid_of(y, 1.0 / 6, 0.5); }); },
    "x * numpy.clip(x / 6 + 0.5, 0, 1)");
const Operator softplus = unary("nn.softplus", floating, softplus_of, "numpy.log1p(numpy.exp(x))");
const Operator gelu = unary("nn.gelu", floating, gelu_of, "0.5 * x * (1 + scipy.special.erf(x / numpy.sqrt(2)))");
const Operator gelu_tanh = unary("nn.gelu_tanh", floating, gelu_tanh_of,
                                 "0.5 * x * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (x + 0.044715 * x**3)))");
const Operator silu = unary(
    "nn.silu", floating,
    [](const Expr& x) { return in_float32(x, [](const Expr& y) { return y * ir::call(ir::intrinsic::sigmoid, y); }); },
    "x / (1 + numpy.exp(-x))");

// x where it is not negative, slope * x elsewhere; the slope broadcasts to x.
const Operator prelu{
    .name = "nn.prelu",
    .inputs = {{"x"}, {"slope"}},
    .infer = infer_prelu,
    .meaning = relax::TeExpression(lower_prelu),
    .fusion = FusionKind::broadcast,
    .reference = "numpy.where(x < 0, slope * x, x)",
};

}  // namespace lathe::ops
