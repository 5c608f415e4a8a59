#include "tir/interpret/scalar.h"

#include "ir/formats/float_format.h"
#include "tir/codes.h"

namespace lathe::tir::interpreter {
namespace {

bool is_wide_unsigned(DType t) { return t.is_uint() && t.bits == 64; }
uint64_t bits_of(int64_t value) { return static_cast<uint64_t>(value); }

[[noreturn]] void divided_by_zero() {
  throw support::DiagnosticError(
      support::Diagnostic{.code = codes::division_by_zero, .message = "an integer is divided by zero"});
}

int64_t integer_arithmetic(Operation op, DType t, int64_t a, int64_t b) {
  const bool wide = is_wide_unsigned(t);
  switch (op) {
    case Operation::add:
      return static_cast<int64_t>(bits_of(a) + bits_of(b));
    case Operation::sub:
      return static_cast<int64_t>(bits_of(a) - bits_of(b));
    case Operation::mul:
      return static_cast<int64_t>(bits_of(a) * bits_of(b));
    case Operation::min:
      return wide ? (bits_of(a) < bits_of(b) ? a : b) : std::min(a, b);
    case Operation::max:
      return wide ? (bits_of(a) > bits_of(b) ? a : b) : std::max(a, b);
    case Operation::and_:
      return a & b;
    case Operation::or_:
      return a | b;
    default:
      break;
  }
  if (b == 0) divided_by_zero();
  if (wide) {
    const bool quotient = op == Operation::div || op == Operation::floordiv;
    return static_cast<int64_t>(quotient ? bits_of(a) / bits_of(b) : bits_of(a) % bits_of(b));
  }
  if (b == -1) {  // avoids the one overflow of division
    const bool quotient = op == Operation::div || op == Operation::floordiv;
    return quotient ? static_cast<int64_t>(0 - bits_of(a)) : 0;
  }
  const int64_t quotient = a / b, remainder = a % b;
  const bool adjust = remainder != 0 && (remainder < 0) != (b < 0);
  switch (op) {
    case Operation::div:
      return quotient;
    case Operation::mod:
      return remainder;
    case Operation::floordiv:
      return quotient - adjust;
    default:
      return adjust ? remainder + b : remainder;
  }
}

template <class F>
F float_arithmetic(Operation op, F a, F b) {
  const auto python_modulo = [](F x, F y) {
    const F remainder = std::fmod(x, y);
    return remainder != 0 && (remainder < 0) != (y < 0) ? remainder + y : remainder;
  };
  switch (op) {
    case Operation::add:
      return a + b;
    case Operation::sub:
      return a - b;
    case Operation::mul:
      return a * b;
    case Operation::div:
      return a / b;
    case Operation::mod:
      return std::fmod(a, b);
    case Operation::floordiv:
      return std::floor(a / b);
    case Operation::floormod:
      return python_modulo(a, b);
    // IEEE 754-2019 minimum and maximum: NaN wins; -0 is below +0, which compiled code need not keep to.
    case Operation::min:
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<F>::quiet_NaN();
      return a < b || (a == b && std::signbit(a)) ? a : b;
    case Operation::max:
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<F>::quiet_NaN();
      return a > b || (a == b && !std::signbit(a)) ? a : b;
    default:
      support::unreachable("an operation that is not arithmetic");
  }
}

template <class T>
bool compare(Operation op, T a, T b) {
  switch (op) {
    case Operation::eq:
      return a == b;
    case Operation::ne:
      return a != b;
    case Operation::lt:
      return a < b;
    case Operation::le:
      return a <= b;
    case Operation::gt:
      return a > b;
    default:
      return a >= b;
  }
}

bool is_comparison(Operation op) { return op >= Operation::eq && op <= Operation::ge; }

int64_t integer_power(DType t, int64_t base, int64_t exponent) {
  if (exponent < 0 && t.is_int()) {
    if (base == 0) divided_by_zero();
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 ? -1 : 1;
    return 0;
  }
  uint64_t result = 1, factor = bits_of(base);
  for (uint64_t left = bits_of(exponent); left; left >>= 1) {
    if (left & 1) result *= factor;
    factor *= factor;
  }
  return static_cast<int64_t>(result);
}

int64_t shifted(const Intrinsic& op, DType t, int64_t value, int64_t amount) {
  const bool beyond = amount < 0 || amount >= t.bits;
  if (&op == &intrinsic::shift_left) return beyond ? 0 : static_cast<int64_t>(bits_of(value) << amount);
  if (t.is_uint()) return beyond ? 0 : static_cast<int64_t>(bits_of(value) >> amount);
  return value >> (beyond ? 63 : amount);
}

// Rows of functions over the reals: computed in double, then rounded (through float for narrower dtypes, as compiled
// code that widens to float32 does).
struct RealFunction {
  const Intrinsic* op;
  double (*compute)(double);
};
double to_nearest_even(double x) { return std::nearbyint(x); }
double power_of_ten(double x) { return std::pow(10.0, x); }
double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double same(double x) { return x; }
const RealFunction real_functions[] = {
    {&intrinsic::abs, std::fabs},
    {&intrinsic::acos, std::acos},
    {&intrinsic::acosh, std::acosh},
    {&intrinsic::asin, std::asin},
    {&intrinsic::asinh, std::asinh},
    {&intrinsic::atan, std::atan},
    {&intrinsic::atanh, std::atanh},
    {&intrinsic::ceil, std::ceil},
    {&intrinsic::cos, std::cos},
    {&intrinsic::cosh, std::cosh},
    {&intrinsic::erf, std::erf},
    {&intrinsic::exp, std::exp},
    {&intrinsic::exp2, std::exp2},
    {&intrinsic::exp10, power_of_ten},
    {&intrinsic::exp_nonpositive, std::exp},
    {&intrinsic::expm1, std::expm1},
    {&intrinsic::floor, std::floor},
    {&intrinsic::log, std::log},
    {&intrinsic::log10, std::log10},
    {&intrinsic::log1p, std::log1p},
    {&intrinsic::log2, std::log2},
    {&intrinsic::round, std::round},
    {&intrinsic::nearbyint, to_nearest_even},
    {&intrinsic::sigmoid, logistic},
    {&intrinsic::sin, std::sin},
    {&intrinsic::sinh, std::sinh},
    {&intrinsic::sqrt, std::sqrt},
    {&intrinsic::tan, std::tan},
    {&intrinsic::tanh, std::tanh},
    {&intrinsic::trunc, std::trunc},
    {&intrinsic::likely, same},
};

const Intrinsic* const other_elementwise[] = {
    &intrinsic::atan2,       &intrinsic::copysign,    &intrinsic::fma,         &intrinsic::isfinite,
    &intrinsic::isinf,       &intrinsic::isnan,       &intrinsic::pow,         &intrinsic::rsqrt,
    &intrinsic::hypot,       &intrinsic::ldexp,       &intrinsic::nextafter,   &intrinsic::bitwise_and,
    &intrinsic::bitwise_or,  &intrinsic::bitwise_xor, &intrinsic::bitwise_not, &intrinsic::shift_left,
    &intrinsic::shift_right, &intrinsic::popcount,    &intrinsic::clz,
};

double through_float(DType dtype, double value) {
  return dtype.is_ieee_float() && dtype.bits == 64 ? value
                                                   : rounded(dtype, static_cast<double>(static_cast<float>(value)));
}

// The value next to x on the side of y: one step of the bit patterns, which are in the order of the magnitudes.
double next_after(DType t, double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<double>::quiet_NaN();
  if (x == y) return y;
  if (t.is_ieee_float() && t.bits == 64) return std::nextafter(x, y);
  const uint64_t sign = uint64_t{1} << (t.bits - 1);
  if (x == 0) return decode_float(t, (y < 0 ? sign : 0) | 1);
  const bool away = (y > x) == (x > 0);
  const uint64_t bits = encode_float(t, x) + (away ? 1 : uint64_t(-1));
  // Some formats have a NaN in the place of -0.
  const bool one_zero = t.bits <= 16 && t.code != TypeCode::float8_e8m0fnu && !float_format(t).has_negative_zero();
  return one_zero && bits == sign ? 0.0 : decode_float(t, bits);
}

Scalar float_intrinsic(const Intrinsic& op, DType t, std::span<const Scalar> args) {
  const double x = args[0].f;
  if (&op == &intrinsic::atan2) return {0, through_float(t, std::atan2(x, args[1].f))};
  if (&op == &intrinsic::hypot) return {0, through_float(t, std::hypot(x, args[1].f))};
  if (&op == &intrinsic::ldexp) return {0, rounded(t, std::ldexp(x, static_cast<int>(args[1].i)))};
  if (&op == &intrinsic::nextafter) return {0, next_after(t, x, args[1].f)};
  if (&op == &intrinsic::copysign) return {0, std::copysign(x, args[1].f)};
  if (&op == &intrinsic::pow) return {0, through_float(t, std::pow(x, args[1].f))};
  if (&op == &intrinsic::fma) {
    if (t.bits == 64) return {0, std::fma(x, args[1].f, args[2].f)};
    const float single = std::fma(static_cast<float>(x), static_cast<float>(args[1].f), static_cast<float>(args[2].f));
    return {0, rounded(t, static_cast<double>(single))};
  }
  if (&op == &intrinsic::rsqrt) {
    const Scalar root{0, through_float(t, std::sqrt(x))};
    return compute(Operation::div, t, Scalar{0, 1.0}, root);
  }
  support::unreachable("an intrinsic without a meaning on floats");
}

int64_t integer_intrinsic(const Intrinsic& op, DType t, std::span<const Scalar> args) {
  const int64_t x = args[0].i;
  if (&op == &intrinsic::abs) return x < 0 && !t.is_uint() ? static_cast<int64_t>(0 - bits_of(x)) : x;
  if (&op == &intrinsic::pow) return integer_power(t, x, args[1].i);
  if (&op == &intrinsic::bitwise_and) return x & args[1].i;
  if (&op == &intrinsic::bitwise_or) return x | args[1].i;
  if (&op == &intrinsic::bitwise_xor) return x ^ args[1].i;
  if (&op == &intrinsic::bitwise_not) return t.is_bool() ? x == 0 : ~x;
  if (&op == &intrinsic::shift_left || &op == &intrinsic::shift_right) return shifted(op, t, x, args[1].i);
  const uint64_t mask = t.bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << t.bits) - 1;
  if (&op == &intrinsic::popcount) return std::popcount(bits_of(x) & mask);
  if (&op == &intrinsic::clz) return std::countl_zero(bits_of(x) & mask) - (64 - t.bits);
  // Rounding and `likely` leave an integer as it is.
  return x;
}

}  // namespace

double rounded(DType dtype, double f) {
  if (dtype.is_ieee_float() && dtype.bits == 64) return f;
  if (dtype.is_ieee_float() && dtype.bits == 32) return static_cast<double>(static_cast<float>(f));
  return round_to(dtype, f);
}

Scalar compute(Operation op, DType t, const Scalar& a, const Scalar& b) {
  if (t.is_floating()) {
    if (is_comparison(op)) return {compare(op, a.f, b.f), 0};
    if (t.is_ieee_float() && t.bits == 64) return {0, float_arithmetic(op, a.f, b.f)};
    const float single = float_arithmetic(op, static_cast<float>(a.f), static_cast<float>(b.f));
    return {0, rounded(t, static_cast<double>(single))};
  }
  if (is_comparison(op)) {
    if (is_wide_unsigned(t)) return {compare(op, bits_of(a.i), bits_of(b.i)), 0};
    return {compare(op, a.i, b.i), 0};
  }
  return {wrap_integer(integer_arithmetic(op, t, a.i, b.i), t), 0};
}

Scalar convert(DType to, DType from, const Scalar& value) {
  if (from.is_floating()) {
    if (to.is_floating()) return {0, rounded(to, value.f)};
    if (to.is_bool()) return {value.f != 0, 0};
    // Out of range is unspecified; saturation is one of the allowed answers.
    if (std::isnan(value.f)) return {0, 0};
    const double whole = std::trunc(value.f);
    if (is_wide_unsigned(to) && whole >= 9223372036854775808.0)
      return {whole >= 18446744073709551616.0 ? -1 : static_cast<int64_t>(static_cast<uint64_t>(whole)), 0};
    const double low = -9223372036854775808.0, high = 9223372036854775807.0;
    const int64_t i = whole <= low    ? std::numeric_limits<int64_t>::min()
                      : whole >= high ? std::numeric_limits<int64_t>::max()
                                      : static_cast<int64_t>(whole);
    return {wrap_integer(i, to), 0};
  }
  if (to.is_floating()) {
    const bool single = to.is_ieee_float() && to.bits == 32;
    if (is_wide_unsigned(from)) {
      const uint64_t u = bits_of(value.i);
      return {0, single ? static_cast<double>(static_cast<float>(u)) : rounded(to, static_cast<double>(u))};
    }
    return {0, single ? static_cast<double>(static_cast<float>(value.i)) : rounded(to, static_cast<double>(value.i))};
  }
  return {wrap_integer(value.i, to), 0};
}

bool is_elementwise(const Intrinsic& op) {
  for (const RealFunction& row : real_functions)
    if (row.op == &op) return true;
  return std::find(std::begin(other_elementwise), std::end(other_elementwise), &op) != std::end(other_elementwise);
}

Scalar compute(const Intrinsic& op, DType result, DType argument, std::span<const Scalar> args) {
  if (argument.is_floating()) {
    if (&op == &intrinsic::isnan) return {std::isnan(args[0].f), 0};
    if (&op == &intrinsic::isinf) return {std::isinf(args[0].f), 0};
    if (&op == &intrinsic::isfinite) return {std::isfinite(args[0].f), 0};
    for (const RealFunction& row : real_functions)
      if (row.op == &op) return {0, through_float(result, row.compute(args[0].f))};
    return float_intrinsic(op, result, args);
  }
  if (&op == &intrinsic::isnan || &op == &intrinsic::isinf) return {0, 0};
  if (&op == &intrinsic::isfinite) return {1, 0};
  return {wrap_integer(integer_intrinsic(op, argument, args), result), 0};
}

uint64_t to_bits(DType dtype, const Scalar& value) {
  if (dtype.is_floating()) return encode_float(dtype, value.f);
  const int64_t bits = dtype.storage_bits();
  return bits >= 64 ? bits_of(value.i) : bits_of(value.i) & ((uint64_t{1} << bits) - 1);
}

Scalar from_bits(DType dtype, uint64_t bits) {
  if (dtype.is_floating()) return {0, decode_float(dtype, bits)};
  return {wrap_integer(static_cast<int64_t>(bits), dtype), 0};
}

}  // namespace lathe::tir::interpreter
