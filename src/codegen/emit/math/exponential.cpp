// exp and its kin. Reduction by Cody and Waite: x = k ln 2 + r, |r| <= ln 2 / 2, exp(x) = 2^k exp(r); ln 2 in two
// parts so that k times the first is exact. exp(r) = 1 + r + r^2 Q(r), Q minimax (Remez; the weighted error stands
// beside it). exp itself in float32 has a shorter Q, and is within 0.9 units of the last place. Where a register holds
// a table of 2^(j/n), k counts in steps of 1/n (Tang, "Table-driven implementation of the exponential function", 1989):
// r is so small that Q has two or three terms, and exp is within 1.1 units. Overflow gives infinity, what underflows is
// rounded once, NaN stays NaN.
#include <numbers>

#include "codegen/emit/math/building.h"

namespace lathe::codegen::math {
namespace {

struct Constants {
  double to_integer;  // 1.5 * 2^mantissa: adding it leaves the nearest integer in the low bits
  double log2_e, ln2_high, ln2_low;
  int bias, mantissa;
};
constexpr Constants single_constants{12582912.0, 1.4426950408889634, 0.69287109375, 0.00027608680994530943, 127, 23};
constexpr Constants double_constants{
    6755399441055744.0, 1.4426950408889634, 0.69314718036912382, 1.9082149292705877e-10, 1023, 52};

const Constants& constants_of(const Expr& x) { return x->dtype.bits == 32 ? single_constants : double_constants; }

struct Reduced {
  Expr k;      // integer, as bits
  Expr rest;   // x - k ln 2
  Expr whole;  // k as a float
};

// The integer nearest to factor x, beside what `magic` has in its low bits.
struct Counted {
  Expr bits;   // of the sum with `magic`
  Expr whole;  // the integer alone, as a float
};
Counted count(Terms& t, const Expr& x, double factor, double magic) {
  const Expr shifted = t(x * number(x, factor) + number(x, magic));
  return {bits_of(shifted), t(shifted - number(x, magic))};
}

// x - whole ln 2.
Expr rest_of(Terms& t, const Expr& x, const Expr& whole) {
  const Constants& c = constants_of(x);
  return t(x - whole * number(x, c.ln2_high) - whole * number(x, c.ln2_low));
}

Reduced reduce(Terms& t, const Expr& x) {
  const Constants& c = constants_of(x);
  const auto [bits, whole] = count(t, x, c.log2_e, c.to_integer);
  const int64_t magic_bits = x->dtype.bits == 32 ? std::bit_cast<int32_t>(static_cast<float>(c.to_integer))
                                                 : std::bit_cast<int64_t>(c.to_integer);
  return {t(bits - magic_bits), rest_of(t, x, whole), whole};
}

struct Power {
  Expr power;  // 2^(k + exponent), a normal number
  Expr rest;   // x - k ln 2
};

// In float32. The exponent's bias is in what is added to count k, so that the bits of the sum have only to be moved to
// their place.
Power reduce_to_power(Terms& t, const Expr& x, int exponent = 0) {
  const Constants& c = single_constants;
  const auto [bits, whole] = count(t, x, c.log2_e, c.to_integer + c.bias + exponent);
  const Expr rest = rest_of(t, x, whole);
  return {t(from_bits(shift_left(bits, c.mantissa))), rest};
}

// exp(r) - 1 for |r| <= ln 2 / 2.
Expr expm1_reduced(const Expr& r) {
  if (r->dtype.bits == 32)  // 2^-34.3
    return r * r * polynomial(r, {0.5, 0.166666672, 0.0416662693, 0.00833326485, 0.0013946048, 0.000199182774}) + r;
  // 2^-64
  return r * r *
             polynomial(r, {0.5, 0.16666666666666685, 0.04166666666666672, 0.0083333333333167336, 0.0013888888888859041,
                            0.00019841269897067444, 2.4801587372724364e-05, 2.7557234229385898e-06,
                            2.755723413572669e-07, 2.5112242186443825e-08, 2.0926725314391295e-09}) +
         r;
}

// `by` times (exp(sign r) - 1) / r for |r| <= ln 2 / 2 in float32, 2^-28.3 before rounding; `by` is a power of two.
Expr growth_reduced(const Expr& r, double sign, double by = 1.0) {
  const double odd = sign * by;
  return polynomial(r, {odd, by * 0.4999999403953552, odd * 0.1666652113199234, by * 0.04166838899254799,
                        odd * 0.00836874544620514, by * 0.0013814539415761828});
}

// `by` times exp(r).
Expr exp_reduced(const Expr& r, double by = 1.0) { return growth_reduced(r, 1.0, by) * r + number(r, by); }

// ---- by a table, in float32 ----

bool has_table(const Terms& t, const Expr& x) { return x->dtype.bits == 32 && t.native().table_entries > 0; }
int bits_of_table(int entries) { return std::countr_zero(static_cast<unsigned>(entries)); }
// The last bit of what is added to it is worth a step; all its own bits lie above those that are counted.
double magic_of_table(const Terms& t) { return single_constants.to_integer / t.native().table_entries; }

// x = k ln 2 + r, k in steps of 1 / table_entries: the bits that count the steps, k, r.
Reduced reduce_to_table(Terms& t, const Expr& x) {
  const auto [bits, whole] = count(t, x, single_constants.log2_e, magic_of_table(t));
  return {t(bits), rest_of(t, x, whole), whole};
}

// 2^(j / entries + exponent) for the step that the low bits of `steps` name, as bits; `less` for each step.
Expr looked_up(const Expr& steps, int entries, int64_t exponent, int64_t less) {
  std::vector<Expr> args{steps};
  for (int j = 0; j < entries; ++j) {
    const auto power = std::bit_cast<int32_t>(static_cast<float>(std::exp2(j / static_cast<double>(entries))));
    args.push_back(ir::constant(DType::int_(32), static_cast<int64_t>(power) + (exponent << 23) - j * less));
  }
  return call(steps->dtype, math::lookup, std::move(args));
}

// 2^(steps / entries + exponent), where it is a normal number; any number elsewhere.
Expr power_of_steps(Terms& t, const Expr& steps, int entries, int64_t exponent = 0) {
  const int places = 23 - bits_of_table(entries);
  // With its steps subtracted from an entry, all of them may be added to the exponent's place.
  return t(from_bits(looked_up(steps, entries, exponent, int64_t{1} << places) + shift_left(steps, places)));
}

// power * exp(r), |r| <= ln 2 / (2 table_entries).
Expr times_exp(Terms& t, const Expr& power, const Expr& r) {
  const Expr q = t.native().table_entries >= 16
                     ? polynomial(r, {1.0, 0.5000161528587341, 0.16666719317436218})        // 2^-29.2
                     : polynomial(r, {1.0, 0.5, 0.1666802614927292, 0.04166043922305107});  // 2^-32.5
  return power * (r * q) + power;
}

// 2^exponent exp(x), where no power of two that comes of it overflows or is below the normal ones. Where one does, the
// result is any number.
Expr exp_by_table(Terms& t, const Expr& x, int64_t exponent = 0) {
  const Reduced r = reduce_to_table(t, x);
  const Expr power = power_of_steps(t, r.k, t.native().table_entries, exponent);
  return times_exp(t, power, r.rest);
}

// ---- powers of two ----

// 2^k for k in the range of normal exponents.
Expr power_of_two(const Expr& k, const Constants& c) { return from_bits(shift_left(k + c.bias, c.mantissa)); }

// y * 2^k in two steps: k may lie beyond the exponents of normal numbers. Where `vanishes` holds the second factor is
// zero: a product that underflows takes a processor as long as a hundred others, and softmax of what was masked makes
// many.
Expr scaled(Terms& t, const Expr& y, const Expr& k, const Expr& vanishes = {}) {
  const Constants& c = constants_of(y);
  const Expr half = t(shift_right(k, 1));
  const Expr second = power_of_two(k - half, c);
  return y * power_of_two(half, c) * (vanishes ? select(vanishes, number(y, 0.0), second) : second);
}

// The same where a backend may have an instruction for it, which has no need of what vanishes.
Expr scaled(Terms& t, const Expr& y, const Reduced& r, const Expr& vanishes) {
  if (!t.native().has_ldexp(y->dtype)) return scaled(t, y, r.k, vanishes);
  return call(y->dtype, intrinsic::ldexp, {y, cast(DType::int_(32, y->dtype.lanes), r.whole)});
}

Power power_by_instruction(Terms& t, const Expr& x) {
  const Reduced r = reduce(t, x);
  return {t(scaled(t, number(x, 1.0), r, {})), r.rest};
}

// y * 2^k for k <= 0, where one factor is a constant: 2^(k + 64) is normal for all k whose 2^k is not zero.
Expr scaled_down(Terms& t, const Expr& y, const Reduced& r, const Expr& vanishes) {
  if (t.native().has_ldexp(y->dtype)) return scaled(t, y, r, vanishes);
  const Expr up = y * power_of_two(r.k + 64, constants_of(y));
  return up * select(vanishes, number(y, 0.0), number(y, 0x1p-64));
}

}  // namespace

Expr exp_single_inside(Terms& t, const Expr& x) {
  if (has_table(t, x)) return exp_by_table(t, x);
  const Power r = reduce_to_power(t, x);
  return exp_reduced(r.rest) * r.power;
}

Expr exp_single(Terms& t, const Expr& x) {
  if (t.native().has_ldexp(x->dtype)) return exp_guarded(t, x);
  return apart_where(t(magnitude(x) > number(x, 87.0)), exp_apart, x, t(exp_single_inside(t, x)));
}

Expr exp_guarded(Terms& t, const Expr& x) {
  const Expr inside = t(at_most(t(at_least(x, -104.0)), 89.0));
  const Expr vanishes = x < number(x, -104.0);
  if (!has_table(t, x)) {
    const Reduced r = reduce(t, inside);
    return scaled(t, t(exp_reduced(r.rest)), r, vanishes);
  }
  const Reduced steps = reduce_to_table(t, inside);
  const Expr y = t(times_exp(t, t(from_bits(looked_up(steps.k, t.native().table_entries, 0, 0))), steps.rest));
  const int64_t none = std::bit_cast<int32_t>(static_cast<float>(magic_of_table(t)));
  const Expr k = t(shift_right(steps.k - none, bits_of_table(t.native().table_entries)));
  return scaled(t, y, {k, steps.rest, call(intrinsic::floor, steps.whole)}, vanishes);
}

Expr exp_single_above(Terms& t, const Expr& x, double low, const Expr& argument, double high) {
  const bool any = t.native().ldexp_lanes > 0;  // whatever comes of too low an x, it takes no longer
  const Expr is_kept = t(make<Not>(x < number(x, low)));
  const auto chosen = [&](const Expr& y) { return select(is_kept, y, number(x, 0.0)); };
  // All 2^(k - 1) from `low` on are normal, and so is 2^127, twice which times y overflows as it should.
  const bool is_normal = low >= -86.0;
  if (has_table(t, x) && is_normal) {
    // What comes of too low an x is seldom below the normal numbers: of one power of two in 256.
    if (high <= 88.0) return chosen(exp_by_table(t, argument));
    const Expr half = t(exp_by_table(t, t(at_most(argument, 89.0)), -1));
    return chosen(half + half);
  }
  if (has_table(t, x)) return chosen(exp_single(t, argument));
  const Expr bounded = t(high <= 89.0 ? argument : at_most(argument, 89.0));
  if (!any && is_normal) {
    // The powers that come of too low an x have the sign bit for an exponent's, and give no numbers below the normal
    // ones.
    const Power r = reduce_to_power(t, bounded, -1);
    return chosen(t(exp_reduced(r.rest, 2.0)) * r.power);
  }
  const Reduced r = reduce(t, any ? bounded : t(at_least(bounded, low)));
  return chosen(scaled(t, t(exp_reduced(r.rest)), r, {}));
}

// 2^(scale x / ln 2): x has lost so much by a subtraction that one product takes k off, whose error grows as x's own,
// 1.6e-8 |scale x| (8e-8 without one rounding for two operations) beside 1.8 units. With a table in two registers two
// terms are left (2^-24.2).
Expr exp_nonpositive_single(Terms& t, const Expr& x, double scale, double low) {
  const Constants& c = single_constants;
  const int entries = std::max({t.native().paired_entries, t.native().table_entries, 1});
  const Expr factor = number(x, scale * c.log2_e), magic = number(x, c.to_integer / entries);
  const Expr shifted = t(x * factor + magic);
  const Expr whole = t(shifted - magic), steps = t(bits_of(shifted));
  // Who has a table has an instruction for this.
  const Expr rest = t(entries > 1 ? fma(x, factor, negated(whole)) : x * factor - whole);
  const Expr is_kept = t(make<Not>(x < number(x, low)));
  const auto kept = [&](const Expr& y) { return select(is_kept, y, number(x, 0.0)); };
  if (entries == 1)
    return kept(polynomial(rest, {1.0, 0.69314720573719575, 0.24022646890645521, 0.055503287771053248,
                                  0.0096184889563311816, 0.0013399931177239738, 0.0001534581216131163}) *
                power_of_two(steps - std::bit_cast<int32_t>(static_cast<float>(c.to_integer)), c));
  const Expr power = power_of_steps(t, steps, entries);
  const Expr slope =
      entries >= 32   ? polynomial(rest, {0.69315732977313194, 0.24022649737573123})
      : entries >= 16 ? polynomial(rest, {0.69314718266905218, 0.24023428803482855, 0.055502134036342264})
                      : polynomial(rest, {0.69314721426012837, 0.24025762978444157, 0.055496221830451616});  // 2^-25.2
  return kept(power * (rest * slope) + power);
}

Expr exp_sum(Terms& t, const Expr& high, const Expr& low) {
  const Reduced r = reduce(t, high);
  return scaled(t, expm1_reduced(t(r.rest + low)) + number(high, 1.0), r.k);
}

Expr exp_double(Terms& t, const Expr& x) {
  const Reduced r = reduce(t, t(at_most(t(at_least(x, -746.0)), 710.0)));
  return scaled(t, expm1_reduced(r.rest) + number(x, 1.0), r.k, x < number(x, -746.0));
}

Expr exp2_double(Terms& t, const Expr& x) {
  const Expr inside = t(at_most(t(at_least(x, -1080.0)), 1025.0));
  const Expr magic = number(x, double_constants.to_integer);
  const Expr shifted = t(inside + magic);
  const Expr k = t(bits_of(shifted) - std::bit_cast<int64_t>(double_constants.to_integer));
  // x - k is exact; its product with ln 2 keeps the part that is rounded off.
  const Expr rest = t(inside - (shifted - magic));
  const Expr scaled_rest = t(rest * number(x, 0.69314718055994529) + rest * number(x, 2.3190468138462996e-17));
  return scaled(t, expm1_reduced(scaled_rest) + number(x, 1.0), k);
}

// exp(x ln 10), the product kept in two parts.
Expr exp10_double(Terms& t, const Expr& x) {
  const Expr inside = t(at_most(t(at_least(x, -324.0)), 309.0));
  const Expr high = t(inside * number(x, 2.3025850929940459));
  const Expr low =
      t(fma(inside, number(x, 2.3025850929940459), negated(high)) + inside * number(x, -2.1707562233822494e-16));
  const Expr bounded = t(at_most(t(at_least(high, -746.0)), 710.0));
  return exp_sum(t, bounded, t(select(eq(bounded, high), low, number(x, 0.0))));
}

// 2^k (exp(r) - 1) + (2^k - 1), with a factor 2 held back so that k = 1024 does not overflow.
Expr expm1_double(Terms& t, const Expr& x) {
  const Expr inside = t(at_most(t(at_least(x, -50.0)), 710.0));
  const Reduced r = reduce(t, inside);
  const Expr half_power = t(power_of_two(r.k - 1, double_constants));
  const Expr y = t(number(x, 2.0) * (half_power * expm1_reduced(r.rest) + (half_power - number(x, 0.5))));
  // Below this exp(x) - 1 is x; keeps -0 and subnormals.
  return select(magnitude(x) < number(x, 1e-17), x, y);
}

// With e = exp(-|x|) and g = e / (1 + e) the result is 1 - g above zero, and g below, where e - e g loses less than the
// quotient itself.
Expr sigmoid_guarded(Terms& t, const Expr& x) {
  const Expr below = t(negated(magnitude(x)));
  const Reduced r = reduce(t, t(at_least(below, -104.0)));
  const Expr e = t(scaled_down(t, t(exp_reduced(r.rest)), r, below < number(x, -104.0)));
  const Expr g = t(div(e, e + number(x, 1.0)));
  return select(x < number(x, 0.0), e - e * g, number(x, 1.0) - g);
}

// With x = k ln 2 + r, exp(-x) is exp(-r) / 2^k, and the result 2^k / (1 + ((exp(-r) - 1) + 2^k)), whose two sums and
// quotient are all that is rounded by much: 2.0 units of the last place, by trial of all.
Expr sigmoid_single(Terms& t, const Expr& x) {
  if (!t.native().fma) return sigmoid_guarded(t, x);
  // Whole vectors and single elements give the same bits: what one has an instruction for, all do.
  const bool any = t.native().ldexp_lanes > 0;
  const Expr bounded = t(at_most(any ? t(at_least(x, -110.0)) : x, 88.0));
  const auto [power, rest] = any ? power_by_instruction(t, bounded) : reduce_to_power(t, bounded);
  const Expr less = t(rest * growth_reduced(rest, -1.0));  // exp(-r) - 1
  const Expr y = t(div(power, number(x, 1.0) + (less + power)));
  // Below, 2^k is no normal number.
  return any ? y : apart_where(t(x < number(x, -87.0)), sigmoid_apart, x, y);
}

// With x = k ln 2 / 2 + r and g = (exp(2 r) - 1) / 2 it is 2^k g + (2^k - 1) / 2.
// A single ln 2 does: what it lacks, 2^-28 of k ln 2, is felt less than 2^k grows. The bias as in reduce_to_power.
Expr half_expm1_of_twice_single(Terms& t, const Expr& x) {
  const Constants& c = single_constants;
  const auto [bits, whole] = count(t, x, 2 * c.log2_e, c.to_integer + c.bias);
  const Expr r = t(x - whole * number(x, std::numbers::ln2 / 2));
  // 2^-29.2
  const Expr g = t(
      r * r * polynomial(r, {1.0, 0.6666607856750488, 0.33333107829093933, 0.13390159606933594, 0.044615086168050766}) +
      r);
  const Expr power = t(from_bits(shift_left(bits, c.mantissa)));
  return power * g + (power * number(x, 0.5) - number(x, 0.5));
}

Expr one_plus_exp_of_negative(Terms& t, const Expr& x) {
  const Expr negative = t(negated(at_most(x, 80.0)));
  return exp_single_inside(t, negative) + number(x, 1.0);
}

// x / (1 + exp(-x)); below -88 it stays what it is there.
Expr silu_single(Terms& t, const Expr& x) {
  const Expr low = t(at_least(x, -88.0));
  return div(low, one_plus_exp_of_negative(t, low));
}

// tanh(log(1 + e)) is n / (n + 2) with n = e (e + 2); from 20 on that is 1. Below -86 it stays what it is there.
Expr mish_single(Terms& t, const Expr& x) {
  const Expr low = t(at_least(x, -86.0));
  const Expr e = t(exp_single_inside(t, t(at_most(low, 20.0))));
  const Expr n = t(e * (e + number(x, 2.0)));
  return low * div(n, n + number(x, 2.0));
}

Expr sigmoid_double(Terms& t, const Expr& x) {
  const Expr e = t(exp_double(t, t(negated(magnitude(x)))));
  return div(select(x < number(x, 0.0), e, number(x, 1.0)), number(x, 1.0) + e);
}

}  // namespace lathe::codegen::math
