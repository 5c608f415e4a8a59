// The narrow float formats against an independent definition: the value of every bit pattern written out from the
// format's parameters (IEEE 754; OCP OFP8 and MX 1.0), and rounding as the search for the nearest of these values.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/build.h"
#include "ir/tensor_data.h"

namespace lathe::ir {
namespace {

const double infinite = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

enum class Special { ieee, fn, fnuz, none };  // infinities and NaN; NaN all ones; NaN at -0; neither

struct Format {
  const char* name;
  int exponent, mantissa, bias;
  Special special;
  bool saturates;  // instead of NaN where there is no infinity
};

const Format formats[] = {
    {"float16", 5, 10, 15, Special::ieee, false},       {"bfloat16", 8, 7, 127, Special::ieee, false},
    {"float8_e5m2", 5, 2, 15, Special::ieee, false},    {"float8_e4m3fn", 4, 3, 7, Special::fn, false},
    {"float8_e4m3fnuz", 4, 3, 8, Special::fnuz, false}, {"float8_e5m2fnuz", 5, 2, 16, Special::fnuz, false},
    {"float4_e2m1fn", 2, 1, 1, Special::none, true},    {"float8_e3m4", 3, 4, 3, Special::ieee, false},
    {"float8_e4m3", 4, 3, 7, Special::ieee, false},     {"float8_e4m3b11fnuz", 4, 3, 11, Special::fnuz, false},
};

double value_of(const Format& f, uint64_t bits) {
  const uint64_t mantissa_ones = (uint64_t{1} << f.mantissa) - 1, exponent_ones = (uint64_t{1} << f.exponent) - 1;
  const uint64_t m = bits & mantissa_ones, e = (bits >> f.mantissa) & exponent_ones;
  const double sign = (bits >> (f.mantissa + f.exponent)) & 1 ? -1.0 : 1.0;
  if (f.special == Special::ieee && e == exponent_ones) return m ? nan : sign * infinite;
  if (f.special == Special::fn && e == exponent_ones && m == mantissa_ones) return nan;
  if (f.special == Special::fnuz && sign < 0 && e == 0 && m == 0) return nan;
  const double fraction = static_cast<double>(m) / static_cast<double>(mantissa_ones + 1);
  if (e == 0) return sign * fraction * std::pow(2.0, 1 - f.bias);
  return sign * (1 + fraction) * std::pow(2.0, static_cast<int>(e) - f.bias);
}

// Whether two doubles are the same, zeros by sign and every NaN alike.
bool identical(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

// All finite values from the smallest up, with their bits.
std::vector<std::pair<double, uint64_t>> finite_values(const Format& f) {
  std::vector<std::pair<double, uint64_t>> values;
  for (uint64_t bits = 0; bits < uint64_t{1} << (1 + f.exponent + f.mantissa); ++bits) {
    const double v = value_of(f, bits);
    if (std::isfinite(v) && !(v == 0 && std::signbit(v))) values.emplace_back(v, bits);
  }
  std::sort(values.begin(), values.end());
  return values;
}

// The nearest value, ties to an even last bit; beyond the largest as the format says.
double nearest(const Format& f, const std::vector<std::pair<double, uint64_t>>& values, double x) {
  if (x == 0) return x;
  if (std::isnan(x)) return f.special == Special::none ? -0.0 : x;
  const double largest = values.back().first;
  const double step = largest - values[values.size() - 2].first;
  // The next value up would have the next bit pattern: the tie goes to it where the largest one's is odd.
  const double tie = largest + step / 2;
  const bool beyond = std::fabs(x) > tie || (std::fabs(x) == tie && values.back().second % 2 == 1);
  if (beyond) {
    if (f.special == Special::ieee) return std::copysign(infinite, x);
    return f.saturates ? std::copysign(largest, x) : nan;
  }
  const auto above = std::lower_bound(values.begin(), values.end(), std::pair<double, uint64_t>{x, 0});
  if (above == values.end()) return largest;
  if (x < values.front().first) return values.front().first;
  if (above->first == x || above == values.begin()) return above->first;
  const auto below = above - 1;
  const double up = above->first - x, down = x - below->first;
  const bool take_above = up < down || (up == down && above->second % 2 == 0);
  const double chosen = take_above ? above->first : below->first;
  return chosen == 0 ? std::copysign(0.0, x) : chosen;
}

class NumberFormat : public testing::TestWithParam<Format> {};

TEST_P(NumberFormat, decodes_and_encodes_every_pattern) {
  const Format& f = GetParam();
  const DType dtype = *DType::parse(f.name);
  for (uint64_t bits = 0; bits < uint64_t{1} << dtype.bits; ++bits) {
    const double wanted = value_of(f, bits);
    ASSERT_TRUE(identical(decode_float(dtype, bits), wanted)) << f.name << " bits " << bits;
    if (std::isnan(wanted))
      ASSERT_TRUE(std::isnan(decode_float(dtype, encode_float(dtype, wanted))));
    else
      ASSERT_EQ(encode_float(dtype, wanted), bits) << f.name << " value " << wanted;
  }
}

TEST_P(NumberFormat, rounds_to_the_nearest_ties_to_even) {
  const Format& f = GetParam();
  const DType dtype = *DType::parse(f.name);
  const auto values = finite_values(f);
  std::vector<double> inputs{0.0, -0.0, infinite, -infinite, nan, 1e300, -1e300, 1e-300};
  const size_t stride = values.size() > 1000 ? 7 : 1;
  for (size_t i = 0; i + 1 < values.size(); i += stride) {
    const double a = values[i].first, b = values[i + 1].first, middle = a + (b - a) / 2;
    inputs.insert(inputs.end(), {a, middle, std::nextafter(middle, -infinite), std::nextafter(middle, infinite)});
  }
  const double largest = values.back().first, step = largest - values[values.size() - 2].first;
  for (const double x : {largest + step / 4, largest + step / 2, largest + step, largest * 2})
    inputs.insert(inputs.end(), {x, -x, std::nextafter(x, 0.0)});
  for (const double x : inputs) {
    const double wanted = nearest(f, values, x);
    const double rounded = round_to(dtype, x);
    const bool zero = wanted == 0 && rounded == 0;  // fnuz formats have one zero
    ASSERT_TRUE(identical(rounded, wanted) || (zero && f.special == Special::fnuz))
        << f.name << " of " << x << " is " << rounded << ", not " << wanted;
    ASSERT_TRUE(
        identical(decode_float(dtype, encode_float(dtype, x)), f.special == Special::fnuz && zero ? 0.0 : rounded))
        << f.name << " of " << x;
  }
}

INSTANTIATE_TEST_SUITE_P(formats, NumberFormat, testing::ValuesIn(formats),
                         [](const auto& format) { return std::string(format.param.name); });

TEST(e8m0, holds_powers_of_two) {
  const DType dtype = *DType::parse("float8_e8m0fnu");
  for (uint64_t bits = 0; bits < 255; ++bits) {
    const double v = std::pow(2.0, static_cast<int>(bits) - 127);
    EXPECT_EQ(decode_float(dtype, bits), v);
    EXPECT_EQ(encode_float(dtype, v), bits);
    EXPECT_EQ(round_to(dtype, v), v);
  }
  EXPECT_TRUE(std::isnan(decode_float(dtype, 255)));
  EXPECT_EQ(encode_float(dtype, nan), 255u);
  // No sign and no zero: what cannot be held is NaN; between two powers the nearest.
  EXPECT_TRUE(std::isnan(decode_float(dtype, encode_float(dtype, -1.0))));
  EXPECT_EQ(round_to(dtype, 1.25), 1.0);
  EXPECT_EQ(round_to(dtype, 1.75), 2.0);
  EXPECT_EQ(round_to(dtype, 3.0), 4.0);
  EXPECT_TRUE(std::isnan(round_to(dtype, 1e300)));
  EXPECT_TRUE(std::isnan(round_to(dtype, -1.0)));
  for (const double tiny : {0.0, 1e-300, std::pow(2.0, -128)}) EXPECT_EQ(round_to(dtype, tiny), std::pow(2.0, -127));
}

TEST(float32, rounds_as_the_machine_does) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 10000; ++i) {
    const double x = std::bit_cast<double>(random());
    if (std::isnan(x)) continue;
    EXPECT_TRUE(identical(round_to(DType::float32(), x), static_cast<double>(static_cast<float>(x))));
    EXPECT_EQ(encode_float(DType::float32(), x), std::bit_cast<uint32_t>(static_cast<float>(x)));
    EXPECT_TRUE(identical(decode_float(DType::float_(64), encode_float(DType::float_(64), x)), x));
  }
}

TEST(tensor_data, packs_low_bits_first) {
  const TensorData four = tensor_data(DType::int_(4), {3}, std::string("\x21\x0f", 2));
  EXPECT_EQ(int_at(*four, 0), 1);
  EXPECT_EQ(int_at(*four, 1), 2);
  EXPECT_EQ(int_at(*four, 2), -1);
  const TensorData two = tensor_data(DType::uint(2), {4}, std::string("\xe4", 1));
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(int_at(*two, i), i);
  const TensorData e2m1 = tensor_data(*DType::parse("float4_e2m1fn"), {2}, std::string("\xf3", 1));
  EXPECT_EQ(float_at(*e2m1, 0), 1.5);
  EXPECT_EQ(float_at(*e2m1, 1), -6.0);
  EXPECT_EQ(float_at(*tensor_of<uint64_t>(DType::uint(64), {1}, {UINT64_MAX}), 0), 18446744073709551616.0);
  EXPECT_THROW(tensor_data(DType::int_(4), {3}, std::string("\x21", 1)), support::InternalError);
}

}  // namespace
}  // namespace lathe::ir
