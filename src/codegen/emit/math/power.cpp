// pow. The logarithm is kept in two float64 (some 2^-66 relative), because the exponent multiplies its error by up to
// 745; error-free products by fma. float32 needs the float64 logarithm alone. Edge cases as IEEE 754-2019, 9.2.1.
#include "codegen/emit/math/building.h"

namespace lathe::codegen::math {
namespace {

struct Pair {
  Expr high, low;
};

// log x for x positive and finite. With s = f / (2 + f): log(1 + f) = 2 (s + s^3/3 + s^5 P(s^2)), P to 2^-67.
Pair log_pair(Terms& t, const Expr& x) {
  const Split split = split_exponent(t, x);
  const Expr &f = split.fraction, &e = split.exponent;
  const auto exact_low = [&](const Expr& a, const Expr& b, const Expr& product) { return fma(a, b, negated(product)); };
  const Expr d = t(number(x, 2.0) + f);
  const Expr d_low = t(f - (d - number(x, 2.0)));
  const Expr s = t(div(f, d));
  const Expr s_low = t(div(fma(negated(s), d, f) - s * d_low, d));
  const Expr z = t(s * s);
  const Expr z_low = t(exact_low(s, s, z) + number(x, 2.0) * s * s_low);
  const Expr cube = t(s * z);
  const Expr cube_low = t(exact_low(s, z, cube) + (s * z_low + s_low * z));
  const Expr third = number(x, 0.33333333333333331), third_low = number(x, 1.8503717077085941e-17);
  const Expr second = t(cube * third);
  const Expr tail = z * cube *
                    polynomial(z, {0.20000000000000001, 0.14285714285714282, 0.11111111111114241, 0.090909090898211101,
                                   0.076923078815666818, 0.066666481960619431, 0.05883409417644829,
                                   0.052281038999999592, 0.053817195491203368});
  const Expr second_low = t(exact_low(cube, third, second) + (cube * third_low + cube_low * third) + tail);
  const Expr sum = t(s + second);
  const Expr sum_low = t(((s - sum) + second) + (s_low + second_low));
  const Expr whole = t(e * number(x, 0.69314718036912382));
  const Expr twice = t(number(x, 2.0) * sum);
  const Expr high = t(whole + twice);
  const Expr low = t(((whole - high) + twice) + (e * number(x, 1.9082149292705877e-10) + number(x, 2.0) * sum_low));
  return {high, low};
}

// What no formula gives, around |x|^y.
Expr with_edges(Terms& t, const Expr& x, const Expr& y, const Expr& power) {
  const Expr zero = number(x, 0.0), one = number(x, 1.0), infinity = number(x, infinite());
  const Expr size = t(magnitude(x));
  const Expr whole = t(call(intrinsic::trunc, y));
  const Expr half = t(number(y, 0.5) * y);
  const Expr y_integer = t(eq(whole, y));
  const Expr y_odd = t(logical_and(y_integer, ne(call(intrinsic::trunc, half), half)));
  const Expr at_edge = logical_or(logical_or(eq(size, zero), eq(size, infinity)), eq(magnitude(y), infinity));
  const Expr grows = eq(size > one, y > zero);
  const Expr edge = select(eq(size, one), one, select(grows, infinity, zero));
  Expr r = t(select(at_edge, edge, power));
  const Expr negative = t(bits_of(x) < constant(word_of(x->dtype), int64_t{0}));
  r = t(select(logical_and(negative, y_odd), negated(r), r));
  const Expr complex = logical_and(logical_and(x < zero, size < infinity),
                                   logical_not(logical_or(y_integer, eq(magnitude(y), infinity))));
  r = t(select(complex, number(x, not_a_number()), r));
  r = t(select(logical_or(is_nan(x), is_nan(y)), x + y, r));
  return select(logical_or(eq(y, zero), eq(x, one)), one, r);
}

}  // namespace

Expr pow_double(Terms& t, const Expr& x, const Expr& y) {
  const Pair log = log_pair(t, t(magnitude(x)));
  const Expr product = t(y * log.high);
  const Expr low = t(fma(y, log.high, negated(product)) + y * log.low);
  const Expr inside = t(logical_and(product > number(x, -746.0), product < number(x, 710.0)));
  const Expr bounded = t(at_most(t(at_least(product, -746.0)), 710.0));
  const Expr power = t(exp_sum(t, bounded, t(select(inside, low, number(x, 0.0)))));
  return with_edges(t, x, y, power);
}

Expr pow_single(Terms& t, const Expr& x, const Expr& y) {
  const DType wide = DType::float_(64, x->dtype.lanes);
  const Expr wx = t(cast(wide, x)), wy = t(cast(wide, y));
  const Expr power = t(exp_double(t, t(wy * log_double(t, t(magnitude(wx))))));
  return cast(x->dtype, t(with_edges(t, wx, wy, power)));
}

}  // namespace lathe::codegen::math
