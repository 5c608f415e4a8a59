// Arithmetic, element by element.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/integers.h"
#include "interchange/onnx/operators/broadcast.h"
#include "interchange/onnx/operators/tables.h"

namespace lathe::onnx::operators {

namespace {

template <const relax::Operator& op>
void binary(NodeImport& c) {
  const auto [a, b] = broadcast_operands(c);
  c.set(c.call(op, {a, b}));
}

constexpr std::string_view nothing_by_zero = "and integers are not divided by 0";

void divide_elements(NodeImport& c) {
  const auto [a, b] = broadcast_operands(c);
  if (!c.dtype(1).is_floating()) c.expect_no_zero(1, nothing_by_zero);
  c.set(c.call(ops::divide, {a, b}));
}

template <const relax::Operator& op>
void unary(NodeImport& c) {
  c.set(c.call(op, {c.input(0)}));
}

// Of integers too, by the specification: through float64, truncated.
void error_function(NodeImport& c) {
  const DType dtype = c.dtype(0), wide = dtype.is_floating() ? dtype : DType::float_(64);
  c.set(c.cast(c.call(ops::erf, {c.cast(c.input(0), wide)}), dtype));
}

void shift(NodeImport& c) {
  const bool left = c.attributes.word("direction", {"", "LEFT", "RIGHT"}) == "LEFT";
  if (!c.attributes.has("direction")) c.fail(codes::wrong_attribute, "the attribute 'direction' is missing");
  c.set(c.call(left ? ops::left_shift : ops::right_shift, {c.input(0), c.input(1)}));
}

void reciprocal(NodeImport& c) {
  const Expr x = c.input(0);
  c.set(c.call(ops::divide, {c.scalar(c.dtype(0), 1), x}));
}

// The result has the base's type; where the types differ it is computed in the floating-point one.
void power(NodeImport& c) {
  auto [base, exponent] = broadcast_operands(c);
  const DType own = c.dtype(0), other = c.dtype(1);
  if (!own.is_floating() && other.is_floating()) {
    const DType wide = DType::float_(64);
    c.set(c.cast(c.call(ops::power, {c.cast(base, wide), c.cast(exponent, wide)}), own));
    return;
  }
  c.set(c.call(ops::power, {base, c.cast(exponent, own)}));
}

// fmod 0: the remainder has the divisor's sign; 1: the dividend's, as C's fmod.
void modulo(NodeImport& c) {
  const bool fmod = c.attributes.flag("fmod", false);
  if (!fmod && c.dtype(0).is_floating())
    c.fail(codes::wrong_attribute, "Mod of " + c.dtype(0).str() + " needs the attribute fmod to be 1");
  if (!c.dtype(1).is_floating()) c.expect_no_zero(1, "and integers have no remainder of a division by 0");
  c.set(c.call(fmod ? ops::mod : ops::floor_mod, {c.input(0), c.input(1)}));
}

Expr chained(NodeImport& c, const relax::Operator& op) {
  Expr result = c.input(0);
  for (size_t i = 1; i < c.input_count(); ++i) result = c.call(op, {result, c.input(i)});
  return result;
}
template <const relax::Operator& op>
void variadic(NodeImport& c) {
  c.set(chained(c, op));
}
void mean(NodeImport& c) {
  const Expr total = chained(c, ops::add);
  c.set(c.call(ops::divide, {total, c.scalar(c.dtype(0), static_cast<double>(c.input_count()))}));
}

// ---- of known integers ----

using Operands = std::span<const ir::Expr>;

using Checked = bool (*)(int64_t, int64_t, int64_t*);

// Shapes are computed by these: a result that 64 bits do not hold is refused, as wrapping would make another shape.
bool fold_checked(NodeImport& c, const IntegerFunction& f, Checked overflows, std::string_view what) {
  if (c.dtype(0).is_bool() || c.attributes.has("axis")) return false;
  return fold_elementwise(c, {}, [&](Operands x) {
    int64_t value = 0;
    const auto a = ir::as_int(x[0]), b = ir::as_int(x[1]);
    if (a && b && overflows(*a, *b, &value))
      c.fail(codes::too_large, std::string(what) + " of " + std::to_string(*a) + " and " + std::to_string(*b) +
                                   " is more than 64 bits hold");
    return f(x);
  });
}

bool fold(NodeImport& c, const IntegerFunction& f) {
  return !c.dtype(0).is_bool() && !c.attributes.has("axis") && fold_elementwise(c, {}, f);
}
bool fold_add(NodeImport& c) {
  return fold_checked(
      c, [](Operands x) { return std::optional(x[0] + x[1]); },
      [](int64_t a, int64_t b, int64_t* r) { return __builtin_add_overflow(a, b, r); }, "the sum");
}
bool fold_sub(NodeImport& c) {
  return fold_checked(
      c, [](Operands x) { return std::optional(x[0] - x[1]); },
      [](int64_t a, int64_t b, int64_t* r) { return __builtin_sub_overflow(a, b, r); }, "the difference");
}
bool fold_mul(NodeImport& c) {
  return fold_checked(
      c, [](Operands x) { return std::optional(x[0] * x[1]); },
      [](int64_t a, int64_t b, int64_t* r) { return __builtin_mul_overflow(a, b, r); }, "the product");
}
bool fold_div(NodeImport& c) {
  if (!fold(c, [&](Operands x) { return divide(x[0], x[1], c.bounds()); })) return false;
  const Integers& divisors = *c.known(1);
  const auto is_some = [&](const ir::Expr& divisor) { return ir::as_int(divisor) || c.bounds().at_least(divisor, 1); };
  if (!std::all_of(divisors.begin(), divisors.end(), is_some)) c.expect_no_zero(1, nothing_by_zero);
  return true;
}
bool fold_mod(NodeImport& c) {
  if (c.attributes.flag("fmod", false)) return false;
  return fold(c, [&](Operands x) -> std::optional<ir::Expr> {
    if (!c.bounds().at_least(x[1], 1)) return std::nullopt;
    return ir::floormod(x[0], x[1]);
  });
}
bool fold_neg(NodeImport& c) {
  return fold(c, [](Operands x) { return ir::int64(0) - x[0]; });
}
bool fold_abs(NodeImport& c) {
  return fold(c, [](Operands x) { return ir::max(x[0], ir::int64(0) - x[0]); });
}
template <ir::Expr (*f)(ir::Expr, ir::Expr)>
bool fold_chain(NodeImport& c) {
  return fold(c, [](Operands x) {
    ir::Expr result = x[0];
    for (const ir::Expr& each : x.subspan(1)) result = f(result, each);
    return std::optional(result);
  });
}

const OperatorRow rows[] = {
    {"Add", {1, 7, 13, 14}, 2, 2, 1, binary<ops::add>, fold_add},
    {"Sub", {1, 7, 13, 14}, 2, 2, 1, binary<ops::subtract>, fold_sub},
    {"Mul", {1, 7, 13, 14}, 2, 2, 1, binary<ops::multiply>, fold_mul},
    {"Div", {1, 7, 13, 14}, 2, 2, 1, divide_elements, fold_div},
    {"Pow", {1, 7, 12, 13, 15}, 2, 2, 1, power},
    {"Mod", {10, 13}, 2, 2, 1, modulo, fold_mod},
    {"Neg", {6, 13}, 1, 1, 1, unary<ops::negative>, fold_neg},
    {"Abs", {6, 13}, 1, 1, 1, unary<ops::abs>, fold_abs},
    {"Sqrt", {6, 13}, 1, 1, 1, unary<ops::sqrt>},
    {"Reciprocal", {6, 13}, 1, 1, 1, reciprocal},
    {"Exp", {6, 13}, 1, 1, 1, unary<ops::exp>},
    {"Log", {6, 13}, 1, 1, 1, unary<ops::log>},
    {"Sin", {7, 22}, 1, 1, 1, unary<ops::sin>},
    {"Cos", {7, 22}, 1, 1, 1, unary<ops::cos>},
    {"Tan", {7, 22}, 1, 1, 1, unary<ops::tan>},
    {"Acos", {7, 22}, 1, 1, 1, unary<ops::acos>},
    {"Asin", {7, 22}, 1, 1, 1, unary<ops::asin>},
    {"Atan", {7, 22}, 1, 1, 1, unary<ops::atan>},
    {"Cosh", {9, 22}, 1, 1, 1, unary<ops::cosh>},
    {"Sinh", {9, 22}, 1, 1, 1, unary<ops::sinh>},
    {"Acosh", {9, 22}, 1, 1, 1, unary<ops::acosh>},
    {"Asinh", {9, 22}, 1, 1, 1, unary<ops::asinh>},
    {"Atanh", {9, 22}, 1, 1, 1, unary<ops::atanh>},
    {"Tanh", {6, 13}, 1, 1, 1, unary<ops::tanh>},
    {"Erf", {9, 13}, 1, 1, 1, error_function},
    {"Floor", {6, 13}, 1, 1, 1, unary<ops::floor>},
    {"Ceil", {6, 13}, 1, 1, 1, unary<ops::ceil>},
    {"Round", {11, 22}, 1, 1, 1, unary<ops::round>},
    {"Sign", {9, 13}, 1, 1, 1, unary<ops::sign>},
    {"Min", {6, 8, 12, 13}, 1, any_number, 1, variadic<ops::minimum>, fold_chain<ir::min>},
    {"Max", {6, 8, 12, 13}, 1, any_number, 1, variadic<ops::maximum>, fold_chain<ir::max>},
    {"Sum", {6, 8, 13}, 1, any_number, 1, variadic<ops::add>, fold_chain<ir::add>},
    {"BitwiseAnd", {18}, 2, 2, 1, binary<ops::bitwise_and>},
    {"BitwiseOr", {18}, 2, 2, 1, binary<ops::bitwise_or>},
    {"BitwiseXor", {18}, 2, 2, 1, binary<ops::bitwise_xor>},
    {"BitwiseNot", {18}, 1, 1, 1, unary<ops::bitwise_not>},
    {"BitShift", {11}, 2, 2, 1, shift},
    {"Mean", {6, 8, 13}, 1, any_number, 1, mean},
};

}  // namespace

Table arithmetic() { return rows; }

}  // namespace lathe::onnx::operators
