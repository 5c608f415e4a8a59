// log and its kin. x = 2^e m with m in [sqrt(1/2), sqrt(2)), so that no cancellation meets e = -1; subnormals are
// scaled up first. log 0 is -infinity, of what is negative NaN, of infinity infinity; NaN stays NaN.
#include "codegen/emit/math/building.h"

namespace lathe::codegen::math {

namespace {

constexpr int64_t root_half_bits = 0x3f3504f3;  // of sqrt(1/2) in float32

}  // namespace

Split split_exponent(Terms& t, const Expr& x) {
  const bool single = x->dtype.bits == 32;
  const int mantissa = single ? 23 : 52;
  const int64_t root_half = single ? root_half_bits : 0x3fe6a09e667f3bcd;  // bits of sqrt(1/2)
  const double smallest = single ? 0x1p-126 : 0x1p-1022;
  const Expr subnormal = t(x < number(x, smallest));
  const Expr normal = t(select(subnormal, x * number(x, std::ldexp(1.0, mantissa)), x));
  const Expr offset = t(bits_of(normal) - root_half);
  const Expr exponent = cast(DType::int_(32, x->dtype.lanes), shift_right(offset, mantissa));
  const Expr m = from_bits(bit_and(offset, (int64_t{1} << mantissa) - 1) + root_half);
  const Expr adjust = select(subnormal, number(x, -mantissa), number(x, 0.0));
  return {t(cast(x->dtype, exponent) + adjust), t(m - number(x, 1.0))};
}

namespace {

// The values outside of (0, infinity) put in place.
Expr with_edges(Terms& t, const Expr& x, const Expr& inner) {
  Expr y = t(select(x < number(x, infinite()), inner, x));
  y = t(select(eq(x, number(x, 0.0)), number(x, -infinite()), y));
  return select(x < number(x, 0.0), number(x, not_a_number()), y);
}

// log(1 + f) for f of a split, in float64: s = f / (2 + f), log(1 + f) = f - (f^2/2 - s (f^2/2 + R(s^2))); 2^-65.7.
struct Pieces {
  Expr half_square, correction;  // log(1 + f) = f - (half_square - correction)
};
Pieces log_pieces(Terms& t, const Expr& f) {
  const Expr s = t(div(f, number(f, 2.0) + f));
  const Expr z = t(s * s);
  const Expr r =
      z * polynomial(z, {0.66666666666666663, 0.40000000000006242, 0.28571428569086588, 0.2222222264670303,
                         0.18181775672316949, 0.15387090482508217, 0.13250123940444508, 0.13251279145480441});
  const Expr half = t(number(f, 0.5) * f * f);
  return {half, t(s * (half + r))};
}

Expr log_of_fraction(Terms& t, const Expr& f) {
  const Pieces p = log_pieces(t, f);
  return t(f - (p.half_square - p.correction));
}

// log(2^k (1 + f)) in float32. log(1 + f) = f - f^2/2 + f^3 P(f); 2^-30 of f^3 P.
Expr log_of_parts(Terms& t, const Expr& k, const Expr& f) {
  const Expr z = t(f * f);
  const Expr cubic = f * z *
                     polynomial(f, {0.333333105, -0.249999866, 0.200021461, -0.166692182, 0.142200246, -0.12385533,
                                    0.118650973, -0.11780794, 0.0692122504});
  Expr low = t(cubic + k * number(f, 0.00027608680994530943));
  low = t(low - number(f, 0.5) * z);
  return k * number(f, 0.69287109375) + (f + low);
}

// x + x^2 P(x) for 0 <= x <= 1, 2^-27.5; within 1.3 units of the last place.
Expr log1p_of_fraction(const Expr& x) {
  return x * x *
             polynomial(x, {-0.4999993145465851, 0.33330464363098145, -0.24958018958568573, 0.19692102074623108,
                            -0.15344880521297455, 0.10661128163337708, -0.05745723098516464, 0.020086241886019707,
                            -0.003290468594059348}) +
         x;
}

}  // namespace

Expr log_single(Terms& t, const Expr& x) {
  const Split s = split_exponent(t, x);
  return with_edges(t, x, t(log_of_parts(t, s.exponent, s.fraction)));
}

// 1 + x = 2^k (1 + f), where k is that of the rounded sum and f is 2^-k x + (2^-k - 1), of which hardly anything is
// rounded. From 2^127 on 2^-k is taken for 0.
Expr log1p_single(Terms& t, const Expr& x) {
  const Expr one = number(x, 1.0);
  const Expr u = t(one + x);
  const Expr offset = t(bits_of(u) - root_half_bits);
  const Expr places = t(bit_and(offset, -(int64_t{1} << 23)));
  const Expr scale = t(from_bits(bits_of(one) - places));
  const Expr f = t(from_bits(bits_of(x) - places) + (at_least(scale, 0.0) - one));
  const Expr k = cast(x->dtype, cast(DType::int_(32, x->dtype.lanes), shift_right(offset, 23)));
  const Expr y = t(with_edges(t, u, t(log_of_parts(t, t(k), f))));
  return select(eq(u, one), x, y);
}

Expr softplus_single(Terms& t, const Expr& x) {
  const Expr below = t(negated(magnitude(x)));
  const Expr e = t(exp_single_above(t, below, -86.0, below, 0.0));
  return at_least(x, 0.0) + log1p_of_fraction(e);
}

Expr log_double(Terms& t, const Expr& x) {
  const Split s = split_exponent(t, x);
  const Pieces p = log_pieces(t, s.fraction);
  const Expr low = t(p.correction + s.exponent * number(x, 1.9082149292705877e-10));
  const Expr inner = t(s.exponent * number(x, 0.69314718036912382) - ((p.half_square - low) - s.fraction));
  return with_edges(t, x, inner);
}

Expr log2_double(Terms& t, const Expr& x) {
  const Split s = split_exponent(t, x);
  const Expr m = log_of_fraction(t, s.fraction);
  const Expr inner = t(s.exponent + (m * number(x, 1.4426950408889634) + m * number(x, 2.0355273740931033e-17)));
  return with_edges(t, x, inner);
}

Expr log10_double(Terms& t, const Expr& x) {
  const Split s = split_exponent(t, x);
  const Expr m = log_of_fraction(t, s.fraction);
  const Expr low = t(m * number(x, 0.43429448190325182) +
                     (s.exponent * number(x, 1.1451100898021838e-10) + m * number(x, 1.0983196502167651e-17)));
  return with_edges(t, x, t(s.exponent * number(x, 0.30102999554947019) + low));
}

// log(u) for u = 1 + x rounded, times x / (u - 1): the quotient makes good what rounding took (Kahan).
Expr log1p_double(Terms& t, const Expr& x) {
  const Expr u = t(number(x, 1.0) + x);
  const Expr log_u = t(log_double(t, u));
  const Expr y = t(log_u * div(x, u - number(x, 1.0)));
  const Expr kept = t(select(eq(u, number(x, 1.0)), x, y));
  // At -1 and from infinity on the quotient is no number.
  return select(x < number(x, infinite()), select(eq(u, number(x, 0.0)), log_u, kept), log_u);
}

}  // namespace lathe::codegen::math
