// atan, atan2, asin, acos. Odd ones take the sign of their argument, -0 included; asin and acos beyond 1 are NaN.
#include "codegen/emit/math/building.h"

namespace lathe::codegen::math {
namespace {

constexpr double half_pi = 1.5707963267948966, half_pi_low = 6.123233995736766e-17;
constexpr double half_pi_below_single = -4.371139e-08;  // pi/2 less what float32 rounds it to

// asin(x) - x for x in [0, 1/2], z = x^2; 2^-63.8.
Expr asin_rest(const Expr& x, const Expr& z) {
  return x * z *
         polynomial(z, {0.1666666666666666, 0.075000000000025532, 0.044642857139663296, 0.030381944646093589,
                        0.022372151555387819, 0.017352946248613946, 0.013961860845398523, 0.011586094560911345,
                        0.0094811826494641191, 0.010023245207784815, 0.00063675242903792116, 0.02492650957782877,
                        -0.026279480339546312, 0.033719139940701019});
}

// Up to 1/2 the argument itself; above, s = sqrt((1 - a) / 2), with what its rounding lost: asin of a is
// pi/2 - 2 asin(s).
struct Halved {
  Expr far, s, rest;  // asin(s) is s + rest
};
Halved halve(Terms& t, const Expr& a) {
  const Expr far = t(a > number(a, 0.5));
  const Expr z = t(select(far, number(a, 0.5) * (number(a, 1.0) - a), a * a));
  const Expr root = t(square_root(z));
  const Expr lost = div(fma(negated(root), root, z), root + root);
  const Expr s = t(select(far, root, a));
  const Expr use = t(logical_and(far, root > number(a, 0.0)));
  return {far, s, t(asin_rest(s, z) + select(use, lost, number(a, 0.0)))};
}

// asin(s) in float32 for s in [0, 1/2], z = s^2; 2^-27.6.
Expr asin_of_half(const Expr& s, const Expr& z) {
  return s * z *
             polynomial(z, {0.16666752099990845, 0.074953094124794, 0.04546914994716644, 0.024184778332710266,
                            0.042158305644989014}) +
         s;
}

// Of a float32 magnitude: asin of it up to 1/2; of a larger one what that of its root is, (pi/2 - asin(a)) / 2.
struct SingleHalved {
  Expr far, angle;
};
SingleHalved halve_single(Terms& t, const Expr& a) {
  const Expr far = t(a > number(a, 0.5));
  const Expr z = t(select(far, number(a, 0.5) - number(a, 0.5) * a, a * a));
  const Expr s = t(select(far, square_root(z), a));
  return {far, t(asin_of_half(s, z))};
}

}  // namespace

// |r| <= 1 by atan(a) = pi/2 - atan(1/a); 2^-28.5.
Expr atan_single(Terms& t, const Expr& x) {
  const Expr a = t(magnitude(x)), one = number(x, 1.0);
  const Expr big = t(a > one);
  const Expr r = t(div(select(big, number(x, -1.0), a), select(big, a, one)));
  const Expr z = t(r * r);
  const Expr angle = r * z *
                         polynomial(z, {-0.33333298563957214, 0.1999852955341339, -0.1426401436328888,
                                        0.10950861126184464, -0.08399207890033722, 0.05787887051701546,
                                        -0.0310935340821743, 0.010866271331906319, -0.0017821441870182753}) +
                     r;
  return with_sign_of(select(big, number(x, half_pi), number(x, 0.0)) + angle, x);
}

Expr asin_single(Terms& t, const Expr& x) {
  const SingleHalved h = halve_single(t, t(magnitude(x)));
  const Expr outer = (number(x, half_pi) - number(x, 2.0) * h.angle) + number(x, half_pi_below_single);
  return with_sign_of(select(h.far, outer, h.angle), x);
}

Expr acos_single(Terms& t, const Expr& x) {
  const SingleHalved h = halve_single(t, t(magnitude(x)));
  const Expr twice = h.angle + h.angle;
  const Expr beyond = select(x < number(x, 0.0), number(x, 2 * half_pi) - twice, twice);
  return select(h.far, beyond, number(x, half_pi) - with_sign_of(h.angle, x));
}

// To |t| <= sqrt(2) - 1 by atan(a) = pi/2 - atan(1/a) and pi/4 + atan((a - 1) / (a + 1)); 2^-64.2.
Expr atan_double(Terms& t, const Expr& x) {
  const Expr a = t(magnitude(x));
  const Expr big = t(a > number(x, 2.4142135623730949)), middle = t(a > number(x, 0.41421356237309503));
  const Expr one = number(x, 1.0), zero = number(x, 0.0);
  const Expr numerator = select(big, number(x, -1.0), select(middle, a - one, a));
  const Expr denominator = select(big, a, select(middle, a + one, one));
  const Expr r = t(div(numerator, denominator));
  const Expr z = t(r * r);
  const Expr p =
      r * z *
      polynomial(z, {-0.33333333333333326, 0.19999999999997675, -0.14285714285388551, 0.11111111088205286,
                     -0.090909081453602672, 0.076922827748161518, -0.066662269660158896, 0.058770236091876801,
                     -0.052184148283191838, 0.045035877196095322, -0.033475265442916832, 0.015195900783647964});
  const Expr base = select(big, number(x, half_pi), select(middle, number(x, half_pi / 2), zero));
  const Expr base_low = select(big, number(x, half_pi_low), select(middle, number(x, half_pi_low / 2), zero));
  return with_sign_of(base + (r + (p + base_low)), x);
}

// Both zero or both infinite are on the diagonal or an axis, as IEEE 754-2019, 9.2.1 lists.
Expr atan2_double(Terms& t, const Expr& y, const Expr& x) {
  const Expr ay = t(magnitude(y)), ax = t(magnitude(x));
  const Expr infinity = number(x, infinite()), zero = number(x, 0.0);
  Expr ratio = t(div(ay, ax));
  ratio = t(select(logical_and(eq(ax, infinity), eq(ay, infinity)), number(x, 1.0), ratio));
  ratio = t(select(eq(ay, zero), select(is_nan(x), x, zero), ratio));
  const Expr angle = t(atan_double(t, ratio));
  const Expr behind = t(bits_of(x) < constant(word_of(x->dtype), int64_t{0}));
  const Expr turned = (number(x, 2 * half_pi) - angle) + number(x, 2 * half_pi_low);
  const Expr result = t(select(behind, turned, angle));
  return select(logical_or(is_nan(x), is_nan(y)), x + y, with_sign_of(result, y));
}

Expr asin_double(Terms& t, const Expr& x) {
  const Halved h = halve(t, t(magnitude(x)));
  const Expr outer = (number(x, half_pi) - (h.s + h.s)) - ((h.rest + h.rest) - number(x, half_pi_low));
  return with_sign_of(select(h.far, outer, h.s + h.rest), x);
}

Expr acos_double(Terms& t, const Expr& x) {
  const Halved h = halve(t, t(magnitude(x)));
  const Expr s = h.s + h.s, rest = h.rest + h.rest;
  const Expr behind = (number(x, 2 * half_pi) - s) - (rest - number(x, 2 * half_pi_low));
  const Expr beyond = select(x < number(x, 0.0), behind, s + rest);
  const Expr near = number(x, half_pi) - (with_sign_of(h.s + h.rest, x) - number(x, half_pi_low));
  return select(h.far, beyond, near);
}

}  // namespace lathe::codegen::math
