#include "te/topi/broadcast.h"

#include "ir/intrinsic.h"
#include "te/codes.h"
#include "te/topi/elementwise.h"

namespace lathe::te::topi {

namespace intrinsic = ir::intrinsic;

namespace {

Expr zero_of(const Expr& x) { return ir::constant(x->dtype, 0); }

template <const ir::Intrinsic& op>
Expr function_of(const Expr& x) {
  return ir::call(op, x);
}

template <const ir::Intrinsic& op>
Expr test_of(const Expr& x) {
  return ir::call(ir::DType::boolean().with_lanes(x->dtype.lanes), op, {x});
}

template <const ir::Intrinsic& op>
Expr bits_of(const Expr& a, const Expr& b) {
  return ir::call(a->dtype, op, {a, b});
}

// 1, -1 or 0; of a NaN: NaN.
Expr sign_of(const Expr& x) {
  const Expr one = ir::constant(x->dtype, 1);
  if (x->dtype.is_uint()) return ir::select(ir::gt(x, zero_of(x)), one, zero_of(x));
  return ir::select(ir::gt(x, zero_of(x)), one, ir::select(ir::lt(x, zero_of(x)), ir::constant(x->dtype, -1), x));
}

constexpr UnaryRow unary_table[] = {
    {"identity", [](const Expr& x) { return x; }, "the tensor itself"},
    {"negative", [](const Expr& x) { return ir::sub(zero_of(x), x); }, "0 - x"},
    {"exp", function_of<intrinsic::exp>, "e to the power"},
    {"erf", function_of<intrinsic::erf>, "the Gauss error function"},
    {"tanh", function_of<intrinsic::tanh>, "hyperbolic tangent"},
    {"tan", function_of<intrinsic::tan>, "tangent"},
    {"cos", function_of<intrinsic::cos>, "cosine"},
    {"cosh", function_of<intrinsic::cosh>, "hyperbolic cosine"},
    {"sin", function_of<intrinsic::sin>, "sine"},
    {"sinh", function_of<intrinsic::sinh>, "hyperbolic sine"},
    {"acos", function_of<intrinsic::acos>, "arc cosine"},
    {"acosh", function_of<intrinsic::acosh>, "inverse hyperbolic cosine"},
    {"asin", function_of<intrinsic::asin>, "arc sine"},
    {"asinh", function_of<intrinsic::asinh>, "inverse hyperbolic sine"},
    {"atan", function_of<intrinsic::atan>, "arc tangent"},
    {"atanh", function_of<intrinsic::atanh>, "inverse hyperbolic tangent"},
    {"floor", function_of<intrinsic::floor>, "the largest integral value not above"},
    {"ceil", function_of<intrinsic::ceil>, "the smallest integral value not below"},
    {"sign", sign_of, "1, 0 or -1"},
    {"trunc", function_of<intrinsic::trunc>, "the integral value nearest toward zero"},
    {"abs", function_of<intrinsic::abs>, "absolute value"},
    {"isnan", test_of<intrinsic::isnan>, "whether it is not a number"},
    {"isfinite", test_of<intrinsic::isfinite>, "whether it is neither infinite nor NaN"},
    {"isinf", test_of<intrinsic::isinf>, "whether it is infinite"},
    {"round", function_of<intrinsic::nearbyint>, "the nearest integral value, halves to even"},
    {"log", function_of<intrinsic::log>, "natural logarithm"},
    {"log2", function_of<intrinsic::log2>, "logarithm to base 2"},
    {"log10", function_of<intrinsic::log10>, "logarithm to base 10"},
    {"sqrt", function_of<intrinsic::sqrt>, "square root"},
    {"rsqrt", function_of<intrinsic::rsqrt>, "1 / sqrt(x)"},
    {"sigmoid", function_of<intrinsic::sigmoid>, "1 / (1 + exp(-x))"},
    {"bitwise_not", function_of<intrinsic::bitwise_not>, "all bits flipped"},
    {"logical_not", [](const Expr& x) { return ir::logical_not(x); }, "whether it does not hold"},
    {"relu", [](const Expr& x) { return ir::max(x, zero_of(x)); }, "max(x, 0)"},
};

constexpr BinaryRow binary_table[] = {
    {"add", [](const Expr& a, const Expr& b) { return ir::add(a, b); }, "a + b"},
    {"subtract", [](const Expr& a, const Expr& b) { return ir::sub(a, b); }, "a - b"},
    {"multiply", [](const Expr& a, const Expr& b) { return ir::mul(a, b); }, "a * b"},
    {"divide", [](const Expr& a, const Expr& b) { return ir::div(a, b); }, "a / b, truncated for integers"},
    {"floor_divide",
     [](const Expr& a, const Expr& b) {
       return a->dtype.is_floating() ? ir::call(intrinsic::floor, ir::div(a, b)) : ir::floordiv(a, b);
     },
     "a / b, rounded down"},
    {"mod", [](const Expr& a, const Expr& b) { return ir::mod(a, b); }, "the remainder of divide"},
    {"floor_mod",
     [](const Expr& a, const Expr& b) {
       if (!a->dtype.is_floating()) return ir::floormod(a, b);
       return ir::sub(a, ir::mul(ir::call(intrinsic::floor, ir::div(a, b)), b));
     },
     "the remainder of floor_divide"},
    {"maximum", [](const Expr& a, const Expr& b) { return ir::max(a, b); }, "the larger"},
    {"minimum", [](const Expr& a, const Expr& b) { return ir::min(a, b); }, "the smaller"},
    {"power", bits_of<intrinsic::pow>, "a to the power b"},
    {"left_shift", bits_of<intrinsic::shift_left>, "a << b"},
    {"right_shift", bits_of<intrinsic::shift_right>, "a >> b"},
    {"greater", [](const Expr& a, const Expr& b) { return ir::gt(a, b); }, "a > b"},
    {"less", [](const Expr& a, const Expr& b) { return ir::lt(a, b); }, "a < b"},
    {"equal", [](const Expr& a, const Expr& b) { return ir::eq(a, b); }, "a == b"},
    {"not_equal", [](const Expr& a, const Expr& b) { return ir::ne(a, b); }, "a != b"},
    {"greater_equal", [](const Expr& a, const Expr& b) { return ir::ge(a, b); }, "a >= b"},
    {"less_equal", [](const Expr& a, const Expr& b) { return ir::le(a, b); }, "a <= b"},
    {"logical_and", [](const Expr& a, const Expr& b) { return ir::logical_and(a, b); }, "whether both hold"},
    {"logical_or", [](const Expr& a, const Expr& b) { return ir::logical_or(a, b); }, "whether one holds"},
    {"logical_xor", [](const Expr& a, const Expr& b) { return ir::ne(a, b); }, "whether exactly one holds"},
    {"bitwise_and", bits_of<intrinsic::bitwise_and>, "bits of both"},
    {"bitwise_or", bits_of<intrinsic::bitwise_or>, "bits of either"},
    {"bitwise_xor", bits_of<intrinsic::bitwise_xor>, "bits of exactly one"},
};

std::string text_of_shape(const std::vector<Expr>& shape) {
  std::string text;
  for (const Expr& extent : shape) {
    const auto known = ir::as_int(extent);
    text += (text.empty() ? "" : ", ") + (known ? std::to_string(*known) : std::string("?"));
  }
  return "[" + text + "]";
}

}  // namespace

void refuse_shapes(std::string message) {
  throw support::DiagnosticError(support::Diagnostic{.code = codes::shapes, .message = std::move(message)});
}

std::span<const UnaryRow> unary_rows() { return unary_table; }
std::span<const BinaryRow> binary_rows() { return binary_table; }

std::vector<Expr> broadcast_shapes(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  std::vector<Expr> shape(std::max(a.size(), b.size()));
  for (size_t d = 1; d <= shape.size(); ++d) {
    Expr& extent = shape[shape.size() - d];
    if (d > a.size() || d > b.size()) {
      extent = d > a.size() ? b[b.size() - d] : a[a.size() - d];
      continue;
    }
    const Expr &x = a[a.size() - d], &y = b[b.size() - d];
    extent = ir::is_int(x, 1) || (ir::as_int(y) && !ir::is_int(y, 1)) ? y : x;
    if (ir::as_int(x) && ir::as_int(y) && !ir::is_int(x, 1) && !ir::is_int(y, 1) && *ir::as_int(x) != *ir::as_int(y))
      refuse_shapes("cannot broadcast " + text_of_shape(a) + " with " + text_of_shape(b));
  }
  return shape;
}

Tensor binary(const BinaryRow& row, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype())
    refuse_shapes(std::string(row.name) + " of " + a.dtype().str() + " and " + b.dtype().str() +
                  ": operands have one dtype");
  return map(
      {a, b}, broadcast_shapes(a.shape(), b.shape()),
      [&](const std::vector<Expr>& values) { return row.of(values[0], values[1]); }, "T_" + std::string(row.name));
}

Tensor unary(const UnaryRow& row, const Tensor& x) {
  return map(x, [&](const Expr& value) { return row.of(value); }, "T_" + std::string(row.name));
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  if (!condition.dtype().is_bool() || a.dtype() != b.dtype())
    refuse_shapes("where takes a condition of bool and two tensors of one dtype, not " + condition.dtype().str() +
                  ", " + a.dtype().str() + " and " + b.dtype().str());
  return map(
      {condition, a, b}, broadcast_shapes(condition.shape(), broadcast_shapes(a.shape(), b.shape())),
      [](const std::vector<Expr>& v) { return ir::if_then_else(v[0], v[1], v[2]); }, "T_where");
}

}  // namespace lathe::te::topi
