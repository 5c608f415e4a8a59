#include "ir/build.h"

#include <cmath>
#include <limits>

#include "ir/codes.h"
#include "ir/floor.h"
#include "ir/formats/float_format.h"

namespace lathe::ir {
namespace {

[[noreturn]] void refuse(std::string message) {
  throw support::DiagnosticError(support::Diagnostic{.code = codes::dtype_mismatch, .message = std::move(message)});
}

void check_same(const char* what, const Expr& a, const Expr& b) {
  support::require(a && b, "an operand is missing");
  if (a->dtype != b->dtype) refuse(std::string(what) + " of " + a->dtype.str() + " and " + b->dtype.str());
}

// A scalar operand of a vector operation is broadcast.
void match_lanes(Expr& a, Expr& b) {
  if (a->dtype.lanes == b->dtype.lanes) return;
  if (a->dtype.is_scalar())
    a = make<Broadcast>(a, int64_t{b->dtype.lanes});
  else if (b->dtype.is_scalar())
    b = make<Broadcast>(b, int64_t{a->dtype.lanes});
}

int64_t wrapping(int64_t a, int64_t b, char op) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  return static_cast<int64_t>(op == '+' ? x + y : op == '-' ? x - y : x * y);
}

// Folds when both are constants: `integer` and `floating` compute; a negative answer of `legal` leaves it unfolded.
template <class Kind, class I, class F>
Expr arithmetic(const char* what, Expr a, Expr b, I integer, F floating) {
  match_lanes(a, b);
  check_same(what, a, b);
  const DType t = a->dtype;
  if (t.is_floating()) {
    const auto x = as_float(a), y = as_float(b);
    if (x && y && t.is_ieee_float())
      if (const std::optional<double> folded = floating(*x, *y)) return constant(t, *folded);
  } else if (!t.is_handle()) {
    const auto x = as_int(a), y = as_int(b);
    if (x && y && !(t.is_uint() && t.bits == 64))
      if (const std::optional<int64_t> folded = integer(*x, *y)) return constant(t, *folded);
  }
  return make<Kind>(std::move(a), std::move(b));
}

template <class Kind, class Compare>
Expr comparison(const char* what, Expr a, Expr b, Compare holds) {
  match_lanes(a, b);
  check_same(what, a, b);
  const auto x = as_int(a), y = as_int(b);
  if (x && y && !(a->dtype.is_uint() && a->dtype.bits == 64))
    return constant(DType::boolean(a->dtype.lanes), static_cast<int64_t>(holds(*x, *y)));
  return make<Kind>(std::move(a), std::move(b));
}

std::optional<double> no_fold(double, double) { return std::nullopt; }
bool divisible(int64_t a, int64_t b) { return b != 0 && !(a == std::numeric_limits<int64_t>::min() && b == -1); }

}  // namespace

Var var(std::string name, DType dtype) { return make<VarNode>(std::move(name), dtype); }
Var size_var(std::string name, DType dtype) { return make<VarNode>(std::move(name), dtype, true); }

double round_to(DType dtype, double value) {
  if (dtype.is_ieee_float() && dtype.bits == 64) return value;
  if (dtype.is_ieee_float() && dtype.bits == 32) return static_cast<double>(static_cast<float>(value));
  if (!dtype.is_floating()) return value;
  const bool powers = dtype.code == TypeCode::float8_e8m0fnu;  // neither sign nor zero
  const FloatFormat f = powers ? FloatFormat{8, 0, 128, FloatFormat::Special::fn} : float_format(dtype);
  const double largest = largest_float(dtype), nan = std::numeric_limits<double>::quiet_NaN();
  if (powers) {
    // Negative numbers are NaN, and the smallest power of two stands for what is below it.
    if (value < 0) return nan;
    if (value < std::ldexp(1.0, f.min_exponent())) return std::ldexp(1.0, f.min_exponent());
  }
  if (std::isnan(value)) return f.special == FloatFormat::Special::none ? -0.0 : value;  // as ml_dtypes
  if (value == 0) return value;
  const auto beyond = [&] {
    if (f.special == FloatFormat::Special::none) return std::copysign(largest, value);
    return f.has_infinity() ? std::copysign(std::numeric_limits<double>::infinity(), value) : nan;
  };
  if (std::isinf(value)) return beyond();
  int exponent;
  std::frexp(value, &exponent);  // |value| in [2^(exponent-1), 2^exponent)
  const int quantum = std::max(exponent - 1, f.min_exponent()) - f.mantissa_bits;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum);
  return std::fabs(rounded) <= largest ? rounded : beyond();
}

Expr constant(DType dtype, int64_t value) {
  if (dtype.is_vector()) return make<Broadcast>(constant(dtype.element(), value), int64_t{dtype.lanes});
  if (dtype.is_floating()) return make<FloatImm>(dtype, round_to(dtype, static_cast<double>(value)));
  if (!dtype.is_integer() && !dtype.is_bool()) refuse("no constant of dtype " + dtype.str());
  return make<IntImm>(dtype, wrap_integer(value, dtype));
}

Expr constant(DType dtype, double value) {
  if (dtype.is_vector()) return make<Broadcast>(constant(dtype.element(), value), int64_t{dtype.lanes});
  if (dtype.is_floating()) return make<FloatImm>(dtype, round_to(dtype, value));
  if (dtype.is_bool()) return make<IntImm>(dtype, int64_t{value != 0});
  return constant(dtype, static_cast<int64_t>(value));
}

std::optional<int64_t> as_int(const Expr& e) {
  if (const auto* imm = e.as<IntImm>()) return imm->value;
  if (const auto* b = e.as<Broadcast>()) return as_int(b->value);
  return std::nullopt;
}
std::optional<double> as_float(const Expr& e) {
  if (const auto* imm = e.as<FloatImm>()) return imm->value;
  if (const auto* b = e.as<Broadcast>()) return as_float(b->value);
  return std::nullopt;
}

Expr max_value(DType dtype) {
  if (!dtype.is_floating()) return constant(dtype, max_integer(dtype.element()));
  return constant(dtype, largest_float(dtype.element()));
}
Expr min_value(DType dtype) {
  if (!dtype.is_floating()) return constant(dtype, min_integer(dtype.element()));
  return constant(dtype, -*as_float(max_value(dtype)));
}
Expr infinity(DType dtype) { return constant(dtype, std::numeric_limits<double>::infinity()); }

Expr add(Expr a, Expr b) {
  if (!a->dtype.is_floating() && is_int(b, 0) && a->dtype == b->dtype) return a;
  if (!a->dtype.is_floating() && is_int(a, 0) && a->dtype == b->dtype) return b;
  return arithmetic<Add>(
      "a sum", std::move(a), std::move(b), [](int64_t x, int64_t y) { return wrapping(x, y, '+'); },
      [](double x, double y) { return x + y; });
}
Expr sub(Expr a, Expr b) {
  if (!a->dtype.is_floating() && is_int(b, 0) && a->dtype == b->dtype) return a;
  return arithmetic<Sub>(
      "a difference", std::move(a), std::move(b), [](int64_t x, int64_t y) { return wrapping(x, y, '-'); },
      [](double x, double y) { return x - y; });
}
Expr mul(Expr a, Expr b) {
  if (!a->dtype.is_floating() && a->dtype == b->dtype) {
    if (is_int(b, 1) || is_int(a, 0)) return a;
    if (is_int(a, 1) || is_int(b, 0)) return b;
  }
  return arithmetic<Mul>(
      "a product", std::move(a), std::move(b), [](int64_t x, int64_t y) { return wrapping(x, y, '*'); },
      [](double x, double y) { return x * y; });
}
Expr div(Expr a, Expr b) {
  if (!a->dtype.is_floating() && is_int(b, 1) && a->dtype == b->dtype) return a;
  return arithmetic<Div>(
      "a quotient", std::move(a), std::move(b),
      [](int64_t x, int64_t y) { return divisible(x, y) ? std::optional(x / y) : std::nullopt; },
      [](double x, double y) { return x / y; });
}
Expr mod(Expr a, Expr b) {
  return arithmetic<Mod>(
      "a remainder", std::move(a), std::move(b),
      [](int64_t x, int64_t y) { return divisible(x, y) ? std::optional(x % y) : std::nullopt; }, no_fold);
}
Expr floordiv(Expr a, Expr b) {
  if (!a->dtype.is_floating() && is_int(b, 1) && a->dtype == b->dtype) return a;
  return arithmetic<FloorDiv>(
      "a quotient", std::move(a), std::move(b),
      [](int64_t x, int64_t y) { return divisible(x, y) ? std::optional(floor_div(x, y)) : std::nullopt; }, no_fold);
}
Expr floormod(Expr a, Expr b) {
  if (!a->dtype.is_floating() && is_int(b, 1) && a->dtype == b->dtype) return constant(a->dtype, int64_t{0});
  return arithmetic<FloorMod>(
      "a remainder", std::move(a), std::move(b),
      [](int64_t x, int64_t y) { return divisible(x, y) ? std::optional(floor_mod(x, y)) : std::nullopt; }, no_fold);
}
Expr ceildiv(Expr a, Expr b) {
  if (is_int(b, 1)) return a;
  const Expr rounded = add(a, sub(b, constant(b->dtype, int64_t{1})));
  return floordiv(rounded, b);
}
Expr min(Expr a, Expr b) {
  if (a.same_as(b)) return a;
  return arithmetic<Min>(
      "a minimum", std::move(a), std::move(b), [](int64_t x, int64_t y) { return std::min(x, y); }, no_fold);
}
Expr max(Expr a, Expr b) {
  if (a.same_as(b)) return a;
  return arithmetic<Max>(
      "a maximum", std::move(a), std::move(b), [](int64_t x, int64_t y) { return std::max(x, y); }, no_fold);
}

Expr eq(Expr a, Expr b) {
  return comparison<EQ>("a comparison", std::move(a), std::move(b), [](int64_t x, int64_t y) { return x == y; });
}
Expr ne(Expr a, Expr b) {
  return comparison<NE>("a comparison", std::move(a), std::move(b), [](int64_t x, int64_t y) { return x != y; });
}
Expr lt(Expr a, Expr b) {
  return comparison<LT>("a comparison", std::move(a), std::move(b), [](int64_t x, int64_t y) { return x < y; });
}
Expr le(Expr a, Expr b) {
  return comparison<LE>("a comparison", std::move(a), std::move(b), [](int64_t x, int64_t y) { return x <= y; });
}
Expr gt(Expr a, Expr b) {
  return comparison<GT>("a comparison", std::move(a), std::move(b), [](int64_t x, int64_t y) { return x > y; });
}
Expr ge(Expr a, Expr b) {
  return comparison<GE>("a comparison", std::move(a), std::move(b), [](int64_t x, int64_t y) { return x >= y; });
}

Expr logical_and(Expr a, Expr b) {
  match_lanes(a, b);
  check_same("a conjunction", a, b);
  if (!a->dtype.is_bool()) refuse("'and' of " + a->dtype.str() + ", which is not bool");
  if (is_int(a, 1) || is_int(b, 0)) return b;
  if (is_int(b, 1) || is_int(a, 0)) return a;
  return make<And>(std::move(a), std::move(b));
}
Expr logical_or(Expr a, Expr b) {
  match_lanes(a, b);
  check_same("a disjunction", a, b);
  if (!a->dtype.is_bool()) refuse("'or' of " + a->dtype.str() + ", which is not bool");
  if (is_int(a, 0) || is_int(b, 1)) return b;
  if (is_int(b, 0) || is_int(a, 1)) return a;
  return make<Or>(std::move(a), std::move(b));
}
Expr logical_not(Expr a) {
  if (!a->dtype.is_bool()) refuse("'not' of " + a->dtype.str() + ", which is not bool");
  if (const auto x = as_int(a)) return constant(a->dtype, int64_t{*x == 0});
  return make<Not>(std::move(a));
}

Expr select(Expr condition, Expr a, Expr b) {
  match_lanes(a, b);
  check_same("a choice", a, b);
  if (!condition->dtype.is_bool()) refuse("a condition of " + condition->dtype.str() + ", which is not bool");
  if (const auto x = as_int(condition)) return *x ? a : b;
  return make<Select>(std::move(condition), std::move(a), std::move(b));
}
Expr if_then_else(Expr condition, Expr a, Expr b) {
  match_lanes(a, b);
  check_same("a choice", a, b);
  if (!condition->dtype.is_bool()) refuse("a condition of " + condition->dtype.str() + ", which is not bool");
  if (const auto x = as_int(condition)) return *x ? a : b;
  const DType dtype = a->dtype;
  return call(dtype, intrinsic::if_then_else, {std::move(condition), std::move(a), std::move(b)});
}

Expr cast(DType dtype, Expr value) {
  if (value->dtype == dtype) return value;
  if (dtype.is_vector() && value->dtype.is_scalar())
    return make<Broadcast>(cast(dtype.element(), std::move(value)), int64_t{dtype.lanes});
  if (const auto x = as_int(value); x && !(value->dtype.is_uint() && value->dtype.bits == 64 && dtype.is_floating())) {
    if (dtype.is_bool()) return constant(dtype, int64_t{*x != 0});
    if (!dtype.is_handle()) return constant(dtype, *x);
  }
  if (const auto x = as_float(value)) {
    if (dtype.is_floating() || dtype.is_bool()) return constant(dtype, *x);
    if (std::fabs(*x) < 9.0e18) return constant(dtype, static_cast<int64_t>(*x));
  }
  return make<Cast>(dtype, std::move(value));
}

Expr call(DType dtype, const Intrinsic& op, std::vector<Expr> args) {
  if (op.arity >= 0 && static_cast<size_t>(op.arity) != args.size())
    refuse(std::string(op.name) + " takes " + std::to_string(op.arity) + " arguments, not " +
           std::to_string(args.size()));
  return make<Call>(dtype, &op, std::move(args));
}
Expr call(const Intrinsic& op, Expr x) {
  const DType dtype = x->dtype;
  return call(dtype, op, {std::move(x)});
}

Buffer buffer(std::string name, std::vector<Expr> shape, DType dtype, std::string scope) {
  Var data = make<VarNode>(name, DType::handle());
  return make<BufferNode>(std::move(name), std::move(data), dtype, std::move(shape), std::vector<Expr>{}, Expr{},
                          std::move(scope));
}
Expr load(const Buffer& buffer, std::vector<Expr> indices) {
  if (indices.size() != buffer->shape.size())
    refuse("buffer '" + buffer->name + "' has " + std::to_string(buffer->shape.size()) + " dimensions, not " +
           std::to_string(indices.size()));
  return make<BufferLoad>(buffer, std::move(indices));
}

Expr product(const std::vector<Expr>& extents) {
  Expr total = extents.empty() ? int64(1) : extents[0];
  for (size_t i = 1; i < extents.size(); ++i) total = mul(total, extents[i]);
  return total;
}

}  // namespace lathe::ir
