// Writing functions as expressions. Private to this folder.
//
// A value that is used twice must be bound, or its expression is evaluated twice. `a * b + c` may become one rounding
// or two: where exactly one matters, `fma` stands.
#pragma once

#include "codegen/emit/math/expand.h"

namespace lathe::codegen::math {

using namespace ir;  // NOLINT

// Bound values, in order; `wrap` puts them around the result.
class Terms {
 public:
  explicit Terms(const Native& native = {}) : native_(native) {}
  const Native& native() const { return native_; }
  Expr operator()(Expr value) {
    Var v = var("t", value->dtype);
    bound_.emplace_back(v, std::move(value));
    return v;
  }
  Expr wrap(Expr result) {
    for (auto it = bound_.rbegin(); it != bound_.rend(); ++it) result = make<Let>(it->first, it->second, result);
    bound_.clear();
    return result;
  }

 private:
  std::vector<std::pair<Var, Expr>> bound_;
  Native native_;
};

inline Expr number(const Expr& like, double value) { return constant(like->dtype, value); }
inline Expr fma(Expr a, Expr b, Expr c) {
  const DType t = a->dtype;
  return call(t, intrinsic::fma, {std::move(a), std::move(b), std::move(c)});
}
inline Expr negated(const Expr& x) { return number(x, -1.0) * x; }
inline Expr magnitude(const Expr& x) { return call(intrinsic::abs, x); }
inline Expr with_sign_of(const Expr& x, const Expr& sign) { return call(x->dtype, intrinsic::copysign, {x, sign}); }
inline Expr square_root(const Expr& x) { return call(intrinsic::sqrt, x); }
inline Expr is_nan(const Expr& x) { return call(DType::boolean(x->dtype.lanes), intrinsic::isnan, {x}); }

// The integer type with the bits of a float type, and the bits.
inline DType word_of(DType t) { return DType::int_(t.bits, t.lanes); }
inline Expr bits_of(const Expr& x) { return call(word_of(x->dtype), intrinsic::reinterpret, {x}); }
inline Expr from_bits(const Expr& bits) {
  return call(DType::float_(bits->dtype.bits, bits->dtype.lanes), intrinsic::reinterpret, {bits});
}
inline Expr shift_left(const Expr& x, int64_t by) {
  return call(x->dtype, intrinsic::shift_left, {x, constant(x->dtype, by)});
}
inline Expr shift_right(const Expr& x, int64_t by) {
  return call(x->dtype, intrinsic::shift_right, {x, constant(x->dtype, by)});
}
inline Expr bit_and(const Expr& x, int64_t mask) {
  return call(x->dtype, intrinsic::bitwise_and, {x, constant(x->dtype, mask)});
}
inline Expr bit_or(const Expr& x, const Expr& y) { return call(x->dtype, intrinsic::bitwise_or, {x, y}); }
inline Expr bit_xor(const Expr& x, const Expr& y) { return call(x->dtype, intrinsic::bitwise_xor, {x, y}); }

// `x`, which has no sign of its own, with that of `sign`: one operation less than with_sign_of.
inline Expr positive_with_sign_of(const Expr& x, const Expr& sign) {
  const int64_t mask = x->dtype.bits == 32 ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int64_t>::min();
  return from_bits(bit_or(bits_of(x), bit_and(bits_of(sign), mask)));
}

// c[0] + c[1] x + c[2] x^2 + …, by Horner's rule.
inline Expr polynomial(const Expr& x, std::initializer_list<double> c) {
  const std::vector<double> coefficients(c);
  Expr sum = number(x, coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = sum * x + number(x, coefficients[i]);
  return sum;
}

inline double not_a_number() { return std::numeric_limits<double>::quiet_NaN(); }
inline double infinite() { return std::numeric_limits<double>::infinity(); }

// x clamped from one side; a NaN stays.
inline Expr at_least(const Expr& x, double low) { return select(x < number(x, low), number(x, low), x); }
inline Expr at_most(const Expr& x, double high) { return select(x > number(x, high), number(x, high), x); }

// Whether the condition holds for a lane.
inline Expr any_lane(const Expr& condition) {
  if (!condition->dtype.is_vector()) return condition;
  return call(DType::boolean(), intrinsic::vector_reduce_max, {condition});
}
// `near`, but for the lanes where `far` holds: those are f(x) by a function of its own. Both are bound values.
inline Expr apart_where(const Expr& far, const Intrinsic& f, const Expr& x, const Expr& near) {
  const Expr there = call(f, x);
  return if_then_else(any_lane(far), far->dtype.is_vector() ? select(far, there, near) : there, near);
}

// ---- one function a dtype; all take any number of lanes ----

Expr exp_single(Terms& t, const Expr& x);
// The same for all x without another function.
Expr exp_guarded(Terms& t, const Expr& x);
Expr exp_double(Terms& t, const Expr& x);
// exp(x) for x that cannot overflow or become subnormal: without the guards.
Expr exp_single_inside(Terms& t, const Expr& x);
// 1 + exp(-x) for x >= -88.
Expr one_plus_exp_of_negative(Terms& t, const Expr& x);
// 0 where x < low, exp(argument) elsewhere; the argument is x, but no more than `high`; -104 <= low. Needs no guard of
// its own below.
Expr exp_single_above(Terms& t, const Expr& x, double low, const Expr& argument, double high);
// 0 where x < low, exp(scale x) elsewhere, for x that are not above 0; -87 <= scale low, scale > 0.
Expr exp_nonpositive_single(Terms& t, const Expr& x, double scale, double low);
// exp(high + low), |low| small against high; high within [-746, 710].
Expr exp_sum(Terms& t, const Expr& high, const Expr& low);
// (exp(2 x) - 1) / 2 for x from 0 to 40.
Expr half_expm1_of_twice_single(Terms& t, const Expr& x);
Expr exp2_double(Terms& t, const Expr& x);
Expr exp10_double(Terms& t, const Expr& x);
Expr expm1_double(Terms& t, const Expr& x);
Expr sigmoid_single(Terms& t, const Expr& x);
// The same for all x without another function, by other means that take longer.
Expr sigmoid_guarded(Terms& t, const Expr& x);
Expr sigmoid_double(Terms& t, const Expr& x);
// x * sigmoid(x) (SiLU), within 3.1 units of the last place, or 6e-37 where that is more.
Expr silu_single(Terms& t, const Expr& x);

// x = 2^exponent * (1 + fraction), 1 + fraction in [sqrt(1/2), sqrt(2)); x positive and finite.
struct Split {
  Expr exponent, fraction;  // both floats
};
Split split_exponent(Terms& t, const Expr& x);
Expr log_single(Terms& t, const Expr& x);
Expr log_double(Terms& t, const Expr& x);
Expr log2_double(Terms& t, const Expr& x);
Expr log10_double(Terms& t, const Expr& x);
Expr log1p_double(Terms& t, const Expr& x);
Expr log1p_single(Terms& t, const Expr& x);
// log(1 + exp(x)) (softplus), within 3.1 units of the last place, or 2e-38 where that is more.
Expr softplus_single(Terms& t, const Expr& x);
// x * tanh(log(1 + exp(x))) (Mish), within 5 units of the last place, or 4e-36 where that is more.
Expr mish_single(Terms& t, const Expr& x);
Expr pow_single(Terms& t, const Expr& x, const Expr& y);
Expr pow_double(Terms& t, const Expr& x, const Expr& y);

Expr hypot_double(Terms& t, const Expr& x, const Expr& y);
Expr ldexp_double(Terms& t, const Expr& x, const Expr& k);
// In the bits of any floating type: one step.
Expr next_after(Terms& t, const Expr& x, const Expr& y);

Expr tanh_single(Terms& t, const Expr& x);
Expr tanh_double(Terms& t, const Expr& x);
// 1 + tanh(x) (GELU's approximation), within 3.1 units of the last place, or 2e-38.
Expr one_plus_tanh_single(Terms& t, const Expr& x);
Expr sinh_double(Terms& t, const Expr& x);
Expr cosh_double(Terms& t, const Expr& x);
Expr asinh_double(Terms& t, const Expr& x);
Expr acosh_double(Terms& t, const Expr& x);
Expr atanh_double(Terms& t, const Expr& x);
Expr erf_single(Terms& t, const Expr& x);
Expr erf_double(Terms& t, const Expr& x);
// height (1 + erf(scale x)), of which a normal distribution's function is made (GELU), within 1.6e-7 of the height,
// which is a power of two.
Expr one_plus_erf_single(Terms& t, const Expr& x, double scale = 1, double height = 1);

// These want one instruction for a fused product.
Expr sin_single(Terms& t, const Expr& x);
Expr cos_single(Terms& t, const Expr& x);
// `widest_exponent`: |x| < 2^widest_exponent, which bounds the table of 2/pi.
Expr sin_double(Terms& t, const Expr& x, int widest_exponent);
Expr cos_double(Terms& t, const Expr& x, int widest_exponent);
Expr tan_double(Terms& t, const Expr& x, int widest_exponent);
Expr atan_single(Terms& t, const Expr& x);
Expr asin_single(Terms& t, const Expr& x);
Expr acos_single(Terms& t, const Expr& x);
Expr atan_double(Terms& t, const Expr& x);
Expr atan2_double(Terms& t, const Expr& y, const Expr& x);
Expr asin_double(Terms& t, const Expr& x);
Expr acos_double(Terms& t, const Expr& x);

}  // namespace lathe::codegen::math
