#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace arithmetic_test {

struct Case {
  const Operator* op;
  double (*reference)(double, double);
  bool integers = true;
};

double truncated(double a, double b) { return std::trunc(a / b); }
double python_mod(double a, double b) { return a - b * std::floor(a / b); }

// The integer meaning where it differs from the floating one.
double reference_of(const Case& c, DType dtype, double a, double b) {
  if (!dtype.is_floating() && c.op == &divide) return truncated(a, b);
  return c.reference(a, b);
}

const Case cases[] = {
    {&add, [](double a, double b) { return a + b; }},
    {&subtract, [](double a, double b) { return a - b; }},
    {&multiply, [](double a, double b) { return a * b; }},
    {&divide, [](double a, double b) { return a / b; }},
    {&mod, [](double a, double b) { return std::fmod(a, b); }},
    {&floor_mod, python_mod},
    {&minimum, [](double a, double b) { return std::min(a, b); }},
    {&maximum, [](double a, double b) { return std::max(a, b); }},
};

// Divisors away from zero.
Array divisors(DType dtype, Extents shape, uint64_t seed) {
  Array a = random_array(dtype, std::move(shape), seed, 1, 5);
  for (size_t i = 0; i < a.values.size(); i += 2)
    if (!dtype.is_uint()) a.values[i] = -a.values[i];
  return a;
}

TEST(arithmetic, computes_every_dtype) {
  for (const Case& c : cases)
    for (const auto& dtypes : {floats, integers})
      for (const DType dtype : dtypes) {
        const Array a = random_array(dtype, {3, 5}, 1, -20, 20), b = divisors(dtype, {3, 5}, 2);
        const Array expected = map(dtype, {3, 5}, {a, b},
                                   [&](const std::vector<double>& v) { return reference_of(c, dtype, v[0], v[1]); });
        EXPECT_TRUE(close(run(*c.op, {a, b})[0], expected, 4, 8)) << c.op->name;
      }
}

TEST(arithmetic, broadcasts) {
  const std::vector<std::pair<Extents, Extents>> shapes{
      {{2, 3, 5}, {5}}, {{2, 1, 5}, {3, 1}}, {{}, {4, 7}},  {{1}, {1}},
      {{}, {}},         {{0, 3}, {1, 3}},    {{2, 0}, {1}}, {{7}, {2, 1, 1}}};
  for (const auto& [left, right] : shapes) {
    Extents shape(std::max(left.size(), right.size()));
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t x = d < left.size() ? left[left.size() - 1 - d] : 1;
      const int64_t y = d < right.size() ? right[right.size() - 1 - d] : 1;
      shape[shape.size() - 1 - d] = x == 1 ? y : x;
    }
    const Array a = random_array(DType::float32(), left, 3), b = random_array(DType::float32(), right, 4);
    EXPECT_TRUE(close(run(subtract, {a, b})[0],
                      map(DType::float32(), shape, {a, b}, [](const auto& v) { return v[0] - v[1]; })));
    EXPECT_TRUE(close(run(subtract, {b, a})[0],
                      map(DType::float32(), shape, {b, a}, [](const auto& v) { return v[0] - v[1]; })));
  }
}

TEST(arithmetic, raises_to_powers) {
  for (const DType dtype : floats) {
    const Array a = random_array(dtype, {4, 3}, 5, 0.25, 2), b = random_array(dtype, {4, 3}, 6, -2, 3);
    EXPECT_TRUE(close(run(power, {a, b})[0],
                      map(dtype, {4, 3}, {a, b}, [](const auto& v) { return std::pow(v[0], v[1]); }), 8));
  }
  for (const DType dtype : integers) {
    const Array a = random_array(dtype, {6}, 7, -3, 3), b = random_array(dtype, {6}, 8, 0, 4);
    EXPECT_TRUE(
        close(run(power, {a, b})[0], map(dtype, {6}, {a, b}, [](const auto& v) { return std::pow(v[0], v[1]); })))
        << dtype.str();
  }
}

TEST(arithmetic, wraps_integers) {
  const Array a = array(DType::int_(8), {3}, {127, -128, 100}), b = array(DType::int_(8), {3}, {1, -1, 100});
  EXPECT_TRUE(close(run(add, {a, b})[0], array(DType::int_(8), {3}, {-128, 127, -56})));
  EXPECT_TRUE(close(run(multiply, {a, b})[0], array(DType::int_(8), {3}, {127, -128, 16})));
}

TEST(arithmetic, lets_nan_through_minimum_and_maximum) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Array a = array(DType::float32(), {3}, {nan, 1, 2}), b = array(DType::float32(), {3}, {1, nan, 3});
  EXPECT_TRUE(close(run(minimum, {a, b})[0], array(DType::float32(), {3}, {nan, nan, 2})));
  EXPECT_TRUE(close(run(maximum, {a, b})[0], array(DType::float32(), {3}, {nan, nan, 3})));
}

TEST(arithmetic, refuses_what_does_not_fit) {
  const Array a = zeros(DType::float32(), {8, 128}), b = zeros(DType::float32(), {8, 64});
  const auto shapes = refusal(add, {a, b});
  ASSERT_EQ(shapes.size(), 1u);
  EXPECT_EQ(shapes[0].code, relax::codes::cannot_broadcast);
  EXPECT_EQ(shapes[0].message, "cannot broadcast [8, 128] with [8, 64]");
  EXPECT_EQ(refusal(add, {a, zeros(DType::int_(32), {8, 128})})[0].code, relax::codes::dtype_mismatch);
  EXPECT_EQ(refusal(add, {zeros(DType::boolean(), {2}), zeros(DType::boolean(), {2})})[0].code,
            relax::codes::dtype_not_supported);
  EXPECT_EQ(refusal(add, {a})[0].code, relax::codes::wrong_arguments);
}

}  // namespace arithmetic_test
}  // namespace lathe::ops::testing
