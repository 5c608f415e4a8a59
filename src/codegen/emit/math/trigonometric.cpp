// sin, cos, tan. Reduction to |r| <= pi/4 and a quadrant: below 2^20 by Cody and Waite with pi/2 in parts of 33 bits;
// above by Payne and Hanek, 192 bits of 2/pi chosen by the exponent, only where a lane needs it. Infinities give NaN.
// sin and cos of float32 below 2^17 stay in float32 where fused products are at hand, with pi/2 in parts of 24 bits.
#include "codegen/emit/math/building.h"

namespace lathe::codegen::math {
namespace {

struct Reduced {
  Expr quadrant;   // int64, modulo 4
  Expr high, low;  // the rest
};

constexpr double fast_limit = 0x1p20;

Reduced reduce_fast(Terms& t, const Expr& x) {
  const double to_integer = 6755399441055744.0;
  const Expr magic = number(x, to_integer);
  const Expr shifted = t(x * number(x, 0.63661977236758138) + magic);
  const Expr k = t(shifted - magic);
  // Both products are exact: k has 20 bits, the parts of pi/2 33.
  const Expr rest = t(x - k * number(x, 1.5707963267341256));
  const Expr second = t(k * number(x, 6.077100506303966e-11));
  const Expr high = t(rest - second);
  const Expr low = t(((rest - high) - second) - k * number(x, 2.0222662487959506e-21));
  const Expr sum = t(high + low);
  return {t(bits_of(shifted) - std::bit_cast<int64_t>(to_integer)), sum, t((high - sum) + low)};
}

// 2/pi: 64 bits a word, after a word of zeros.
constexpr uint64_t two_over_pi[] = {0,
                                    0xa2f9836e4e441529,
                                    0xfc2757d1f534ddc0,
                                    0xdb6295993c439041,
                                    0xfe5163abdebbc561,
                                    0xb7246e3a424dd2e0,
                                    0x06492eea09d1921c,
                                    0xfe1deb1cb129a73e,
                                    0xe88235f52ebb4484,
                                    0xe99c7026b45f7e41,
                                    0x3991d639835339f4,
                                    0x9c845f8bbdf9283b,
                                    0x1ff897ffde05980f,
                                    0xef2f118b5a0a6d1f,
                                    0x6d367ecf27cb09b7,
                                    0x4f463f669e5fea2d,
                                    0x7527bac7ebe5f17b,
                                    0x3d0739f78a5292ea,
                                    0x6bfb5fb11f8d5d08,
                                    0x56033046fc7b6bab};

// Word `index` + `ahead` of the table, by halving.
Expr table_word(const std::vector<Expr>& index_bits, DType word, int from, int ahead, int words, int level) {
  if (level < 0) {
    const int at = std::min<int>(from + ahead, std::size(two_over_pi) - 1);
    return constant(word, static_cast<int64_t>(two_over_pi[at]));
  }
  const Expr low = table_word(index_bits, word, from, ahead, words, level - 1);
  if (from + (1 << level) >= words) return low;
  const Expr high = table_word(index_bits, word, from + (1 << level), ahead, words, level - 1);
  return select(index_bits[static_cast<size_t>(level)], high, low);
}

// The high half of the product of two uint64.
Expr high_product(Terms& t, const Expr& a, const Expr& b) {
  const int64_t mask = 0xffffffff;
  const Expr a0 = t(bit_and(a, mask)), a1 = t(shift_right(a, 32)), b0 = t(bit_and(b, mask)), b1 = t(shift_right(b, 32));
  const Expr middle = t(a1 * b0 + shift_right(a0 * b0, 32));
  const Expr other = t(a0 * b1 + bit_and(middle, mask));
  return a1 * b1 + shift_right(middle, 32) + shift_right(other, 32);
}

// |x| in [2^20, 2^widest), as m 2^e: x 2/pi modulo 4 is (m W modulo 2^128) / 2^126, where W are the bits of 2/pi from
// place e - 2 on (the word of zeros in front makes that place positive). Signs are put back at the end.
Reduced reduce_exactly(Terms& t, const Expr& x, int widest) {
  const DType word = DType::uint(64, x->dtype.lanes), signed_word = DType::int_(64, x->dtype.lanes);
  const auto as = [](DType d, const Expr& e) { return call(d, intrinsic::reinterpret, {e}); };
  const Expr bits = t(as(word, magnitude(x)));
  const Expr place = t(shift_right(bits, 52) - int64_t{1075 - 62});
  const Expr m = t(bit_or(bit_and(bits, (int64_t{1} << 52) - 1), constant(word, int64_t{1} << 52)));
  const int words = (widest - 53 + 62) / 64 + 1;
  std::vector<Expr> index_bits;
  int levels = 0;
  while ((1 << levels) < words) ++levels;
  for (int level = 0; level < levels; ++level)
    index_bits.push_back(t(ne(bit_and(place, int64_t{64} << level), constant(word, int64_t{0}))));
  const Expr offset = t(bit_and(place, 63));
  const Expr rest = t(constant(word, int64_t{64}) - offset);
  std::vector<Expr> table, window;
  for (int ahead = 0; ahead < 4; ++ahead) table.push_back(t(table_word(index_bits, word, 0, ahead, words, levels - 1)));
  for (size_t w = 0; w < 3; ++w)
    window.push_back(t(bit_or(call(word, intrinsic::shift_left, {table[w], offset}),
                              call(word, intrinsic::shift_right, {table[w + 1], rest}))));
  const Expr carry_in = t(high_product(t, m, window[2]));
  const Expr low_product = t(m * window[1]);
  const Expr low = t(low_product + carry_in);
  const Expr carry = select(low < low_product, constant(word, int64_t{1}), constant(word, int64_t{0}));
  const Expr high = t(m * window[0] + high_product(t, m, window[1]) + carry);
  // Round to the nearest quadrant; what is left is a signed fraction of 2^-64 and, below it, of 2^-128.
  const Expr quadrant = t(shift_right(high + (int64_t{1} << 61), 62));
  const Expr fraction = t(as(signed_word, bit_or(shift_left(high, 2), shift_right(low, 62))));
  const Expr upper = cast(x->dtype, shift_right(fraction, 32)) * number(x, 0x1p-32);
  const Expr lower = t(cast(x->dtype, bit_and(fraction, 0xffffffff)) * number(x, 0x1p-64));
  const Expr lowest = cast(x->dtype, shift_right(bit_and(low, (int64_t{1} << 62) - 1), 30)) * number(x, 0x1p-96);
  const Expr upper_bound = t(upper);
  const Expr sum = t(upper_bound + lower);
  const Expr sum_low = t(((upper_bound - sum) + lower) + lowest);
  const Expr half_pi = number(x, 1.5707963267948966);
  const Expr r = t(sum * half_pi);
  const Expr r_low = t(fma(sum, half_pi, negated(r)) + (sum * number(x, 6.123233995736766e-17) + sum_low * half_pi));
  const Expr negative = t(x < number(x, 0.0));
  const Expr signed_quadrant = as(signed_word, quadrant);
  return {t(select(negative, constant(signed_word, int64_t{0}) - signed_quadrant, signed_quadrant)),
          t(select(negative, negated(r), r)), t(select(negative, negated(r_low), r_low))};
}

// Minimax on |r| <= pi/4: 2^-68.8 and 2^-75.
Expr sin_of_rest(const Reduced& a) {
  const Expr& r = a.high;
  const Expr z = r * r;
  const Expr p =
      polynomial(z, {-0.16666666666666666, 0.0083333333333333228, -0.00019841269841255066, 2.7557319214188953e-06,
                     -2.5052104911165089e-08, 1.6058366569312438e-10, -7.5786947910435255e-13});
  return r + (r * z * p + a.low * (number(r, 1.0) - number(r, 0.5) * z));
}

Expr cos_of_rest(Terms& t, const Reduced& a) {
  const Expr& r = a.high;
  const Expr z = t(r * r);
  const Expr p =
      polynomial(z, {0.041666666666666664, -0.0013888888888888874, 2.4801587301571476e-05, -2.7557319215366036e-07,
                     2.0876754363695663e-09, -1.1470292961986881e-11, 4.7380943382852817e-14});
  const Expr half = t(number(r, 0.5) * z);
  const Expr w = t(number(r, 1.0) - half);
  return w + (((number(r, 1.0) - w) - half) + (z * z * p - r * a.low));
}

enum class Function { sine, cosine, tangent };

Expr from_quadrant(Terms& t, Function function, const Reduced& a) {
  const Expr zero = constant(a.quadrant->dtype, int64_t{0});
  const Expr sine = t(sin_of_rest(a)), cosine = t(cos_of_rest(t, a));
  const Expr odd = t(ne(bit_and(a.quadrant, 1), zero));
  if (function == Function::tangent) return select(odd, div(negated(cosine), sine), div(sine, cosine));
  const bool is_sine = function == Function::sine;
  const Expr value = t(select(odd, is_sine ? cosine : sine, is_sine ? sine : cosine));
  const Expr turned = is_sine ? a.quadrant : a.quadrant + 1;
  return select(ne(bit_and(turned, 2), zero), negated(value), value);
}

Expr evaluate(Terms& t, Function function, const Expr& x, int widest) {
  Terms near, far;
  const Expr fast = near.wrap(from_quadrant(near, function, reduce_fast(near, x)));
  const Expr large = t(magnitude(x) >= number(x, fast_limit));
  const Reduced small_lanes = reduce_fast(far, far(select(large, number(x, 0.0), x)));
  const Reduced large_lanes = reduce_exactly(far, far(select(large, x, number(x, fast_limit))), widest);
  const Reduced mixed = {far(select(large, large_lanes.quadrant, small_lanes.quadrant)),
                         far(select(large, large_lanes.high, small_lanes.high)),
                         far(select(large, large_lanes.low, small_lanes.low))};
  const Expr slow = far.wrap(from_quadrant(far, function, mixed));
  const Expr y = t(if_then_else(any_lane(large), slow, fast));
  // Infinities are larger than any place in the table. -0 and what is so small that it is its own sine stay.
  const Expr finite = select(magnitude(x) < number(x, infinite()), y, number(x, not_a_number()));
  if (function == Function::cosine) return finite;
  return select(magnitude(x) < number(x, 0x1p-27), x, finite);
}

// ---- float32 ----

// Below, sin and cos are within 1.57 units of the last place, by trial of all, and neither exceeds 1.
constexpr double single_limit = 0x1p17;

// |x| < single_limit. The first product with a part of pi/2 leaves a multiple of 2^-23 below 2, which is exact; what
// the others round lies within a unit of what is left, however little that is.
Expr below_limit(Terms& t, Function function, const Expr& x, const Expr& size) {
  const Expr to_integer = number(x, 12582912.0);
  const Expr shifted = t(fma(size, number(x, 0x1.45f306p-1), to_integer));
  const Expr minus_k = t(to_integer - shifted);
  const Expr first = t(fma(minus_k, number(x, 0x1.921fb4p0), size));
  const Expr second = t(fma(minus_k, number(x, 0x1.4442dp-24), first));
  const Expr r = t(fma(minus_k, number(x, 0x1.846988p-48), second));
  const Expr z = t(r * r);
  // Minimax on |r| <= pi/4 + 0.006, with rounded coefficients: 2^-27.8 and 2^-32.8.
  const Expr sine_terms = polynomial(z, {-0x1.555544p-3, 0x1.1106c6p-7, -0x1.991bf4p-13});
  const Expr cosine_terms = polynomial(z, {0x1.55554ap-5, -0x1.6c0c1ap-10, 0x1.99e148p-16});
  const Expr sine = t(fma(r * z, sine_terms, r));
  const Expr cosine = t(fma(z * z, cosine_terms, fma(number(x, -0.5), z, number(x, 1.0))));
  const bool is_sine = function == Function::sine;
  const Expr places = t(bits_of(shifted));
  const Expr quadrant = is_sine ? places : t(places + 1);
  const Expr odd = ne(bit_and(quadrant, 1), constant(quadrant->dtype, int64_t{0}));
  const Expr value = bits_of(select(odd, cosine, sine));
  const Expr turned = shift_left(quadrant, 30);
  const Expr sign = bit_and(is_sine ? bit_xor(turned, bits_of(x)) : turned, std::numeric_limits<int32_t>::min());
  return from_bits(bit_xor(value, sign));
}

Expr evaluate_single(Terms& t, Function function, const Expr& x, const Intrinsic& apart) {
  const Expr size = t(magnitude(x));
  const Expr near = t(below_limit(t, function, x, size));
  const Expr large = t(size >= number(x, single_limit));
  return apart_where(large, apart, x, near);
}

}  // namespace

Expr sin_single(Terms& t, const Expr& x) { return evaluate_single(t, Function::sine, x, sin_apart); }
Expr cos_single(Terms& t, const Expr& x) { return evaluate_single(t, Function::cosine, x, cos_apart); }

Expr sin_double(Terms& t, const Expr& x, int widest) { return evaluate(t, Function::sine, x, widest); }
Expr cos_double(Terms& t, const Expr& x, int widest) { return evaluate(t, Function::cosine, x, widest); }
Expr tan_double(Terms& t, const Expr& x, int widest) { return evaluate(t, Function::tangent, x, widest); }

}  // namespace lathe::codegen::math
