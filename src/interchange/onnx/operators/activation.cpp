// Activation functions.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/broadcast.h"
#include "interchange/onnx/operators/tables.h"

namespace lathe::onnx::operators {

namespace {

template <const relax::Operator& op>
void activation_unary(NodeImport& c) {
  c.set(c.call(op, {c.input(0)}));
}

void leaky_relu(NodeImport& c) {
  const double alpha = c.attributes.number("alpha", 0.01f);
  c.set(c.call(ops::leakyrelu, {c.input(0)}, ir::make<ops::LeakyReluAttributes>(alpha)));
}

void elu(NodeImport& c) {
  const double alpha = c.attributes.number("alpha", 1);
  c.set(c.call(ops::elu, {c.input(0)}, ir::make<ops::EluAttributes>(alpha)));
}

// max(0, x) + min(0, alpha * (exp(x / alpha) - 1)) = elu of x / alpha, times alpha.
void celu(NodeImport& c) {
  const double alpha = c.attributes.number("alpha", 1);
  if (alpha == 0) c.fail(codes::wrong_attribute, "the attribute 'alpha' of Celu is 0");
  const DType dtype = c.dtype(0);
  const Expr scaled = c.call(ops::divide, {c.input(0), c.scalar(dtype, alpha)});
  const Expr curve = c.call(ops::elu, {scaled}, ir::make<ops::EluAttributes>(1.0));
  c.set(c.call(ops::multiply, {curve, c.scalar(dtype, alpha)}));
}

void selu(NodeImport& c) {
  const ops::SeluAttributes otherwise;
  const double alpha = c.attributes.number("alpha", otherwise.alpha);
  const double gamma = c.attributes.number("gamma", otherwise.gamma);
  c.set(c.call(ops::selu, {c.input(0)}, ir::make<ops::SeluAttributes>(alpha, gamma)));
}

void hard_sigmoid(NodeImport& c) {
  const double alpha = c.attributes.number("alpha", 0.2f), beta = c.attributes.number("beta", 0.5);
  c.set(c.call(ops::hard_sigmoid, {c.input(0)}, ir::make<ops::HardSigmoidAttributes>(alpha, beta)));
}

void gelu(NodeImport& c) {
  const bool tanh = c.attributes.word("approximate", {"none", "tanh"}) == "tanh";
  c.set(c.call(tanh ? ops::gelu_tanh : ops::gelu, {c.input(0)}));
}

// The slope broadcasts to x; before opset 7 it is one number, or one a channel.
void prelu(NodeImport& c) {
  const Expr x = c.input(0);
  Expr slope = c.input(1);
  if (c.version < 7 && c.rank(1) == 1 && c.rank(0) > 1 && !ir::is_int(c.shape(1)[0], 1))
    slope = aligned_at(c, slope, 1, c.rank(0));
  c.set(c.call(ops::prelu, {x, slope}));
}

// x where it exceeds alpha, else 0.
void thresholded_relu(NodeImport& c) {
  const DType dtype = c.dtype(0);
  const Expr x = c.input(0);
  const Expr above = c.call(ops::greater, {x, c.scalar(dtype, c.attributes.number("alpha", 1))});
  c.set(c.call(ops::where, {above, x, c.scalar(dtype, 0)}));
}

// x + bias below -lambd, x - bias above lambd, else 0; of integers in float64.
void shrink(NodeImport& c) {
  const double bias = c.attributes.number("bias", 0), lambd = c.attributes.number("lambd", 0.5);
  const DType dtype = c.dtype(0), wide = dtype.is_floating() ? dtype : DType::float_(64);
  const Expr x = c.cast(c.input(0), wide), zero = c.scalar(wide, 0);
  const Expr below = c.call(ops::less, {x, c.scalar(wide, -lambd)}),
             above = c.call(ops::greater, {x, c.scalar(wide, lambd)});
  const Expr raised = c.call(ops::add, {x, c.scalar(wide, bias)}),
             lowered = c.call(ops::subtract, {x, c.scalar(wide, bias)});
  c.set(c.cast(c.call(ops::where, {below, raised, c.call(ops::where, {above, lowered, zero})}), dtype));
}

void swish(NodeImport& c) {
  const double alpha = c.attributes.number("alpha", 1);
  const Expr x = c.input(0);
  const Expr scaled = alpha == 1 ? x : c.call(ops::multiply, {x, c.scalar(c.dtype(0), alpha)});
  c.set(c.call(ops::multiply, {x, c.call(ops::sigmoid, {scaled})}));
}

void mish(NodeImport& c) {
  const Expr x = c.input(0);
  c.set(c.call(ops::multiply, {x, c.call(ops::tanh, {c.call(ops::softplus, {x})})}));
}

void softsign(NodeImport& c) {
  const Expr x = c.input(0);
  const Expr below = c.call(ops::add, {c.call(ops::abs, {x}), c.scalar(c.dtype(0), 1)});
  c.set(c.call(ops::divide, {x, below}));
}

// Bounds are attributes before opset 11, then scalar inputs, either of which may be absent.
void clip(NodeImport& c) {
  const Expr x = c.input(0);
  const DType dtype = c.dtype(0);
  Expr low, high;
  if (c.version < 11) {
    if (c.attributes.has("min")) low = c.scalar(dtype, c.attributes.number("min", 0));
    if (c.attributes.has("max")) high = c.scalar(dtype, c.attributes.number("max", 0));
  } else {
    const auto bound = [&](size_t i) -> Expr {
      if (!c.has(i)) return {};
      return c.rank(i) == 0 ? c.input(i) : c.reshape(c.input(i), {});
    };
    low = bound(1);
    high = bound(2);
  }
  c.set(low || high ? c.call(ops::clip, {x, low, high}) : x);
}

const OperatorRow activation_rows[] = {
    {"Sigmoid", {6, 13}, 1, 1, 1, activation_unary<ops::sigmoid>},
    {"Relu", {6, 13, 14}, 1, 1, 1, activation_unary<ops::relu>},
    {"LeakyRelu", {6, 16}, 1, 1, 1, leaky_relu},
    {"PRelu", {6, 7, 9, 16}, 2, 2, 1, prelu},
    {"Elu", {6, 22}, 1, 1, 1, elu},
    {"Celu", {12}, 1, 1, 1, celu},
    {"Selu", {6, 22}, 1, 1, 1, selu},
    {"Softplus", {1, 22}, 1, 1, 1, activation_unary<ops::softplus>},
    {"Softsign", {1, 22}, 1, 1, 1, softsign},
    {"HardSigmoid", {6, 22}, 1, 1, 1, hard_sigmoid},
    {"HardSwish", {14, 22}, 1, 1, 1, activation_unary<ops::hard_swish>},
    {"Gelu", {20}, 1, 1, 1, gelu},
    {"Swish", {24}, 1, 1, 1, swish},
    {"Mish", {18, 22}, 1, 1, 1, mish},
    {"ThresholdedRelu", {10, 22}, 1, 1, 1, thresholded_relu},
    {"Shrink", {9}, 1, 1, 1, shrink},
    {"Clip", {6, 11, 12, 13}, 1, 3, 1, clip},
};

}  // namespace

Table activation() { return activation_rows; }

}  // namespace lathe::onnx::operators
