#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace comparison_test {

const double nan = std::numeric_limits<double>::quiet_NaN();
const double infinity = std::numeric_limits<double>::infinity();

struct Case {
  const Operator* op;
  bool (*reference)(double, double);
};
const Case comparisons[] = {
    {&equal, [](double a, double b) { return a == b; }},  {&not_equal, [](double a, double b) { return a != b; }},
    {&less, [](double a, double b) { return a < b; }},    {&less_equal, [](double a, double b) { return a <= b; }},
    {&greater, [](double a, double b) { return a > b; }}, {&greater_equal, [](double a, double b) { return a >= b; }},
};

TEST(comparison, compares_every_dtype) {
  for (const Case& c : comparisons)
    for (const auto& dtypes : {floats, integers})
      for (const DType dtype : dtypes) {
        const Array a = random_array(dtype, {4, 5}, 1, -2, 2), b = random_array(dtype, {5}, 2, -2, 2);
        EXPECT_TRUE(close(run(*c.op, {a, b})[0], map(DType::boolean(), {4, 5}, {a, b},
                                                     [&](const auto& v) { return c.reference(v[0], v[1]); })))
            << c.op->name;
      }
}

TEST(comparison, orders_nothing_with_nan) {
  const Array a = array(DType::float32(), {3}, {nan, 1, nan}), b = array(DType::float32(), {3}, {1, nan, nan});
  for (const Case& c : comparisons)
    EXPECT_TRUE(close(run(*c.op, {a, b})[0],
                      map(DType::boolean(), {3}, {a, b}, [&](const auto& v) { return c.reference(v[0], v[1]); })));
}

TEST(comparison, compares_bool_for_equality_only) {
  const Array a = array(DType::boolean(), {4}, {0, 0, 1, 1}), b = array(DType::boolean(), {4}, {0, 1, 0, 1});
  EXPECT_TRUE(close(run(equal, {a, b})[0], array(DType::boolean(), {4}, {1, 0, 0, 1})));
  EXPECT_EQ(refusal(less, {a, b})[0].code, relax::codes::dtype_not_supported);
}

TEST(comparison, combines_bools) {
  const Array a = array(DType::boolean(), {2, 1}, {0, 1}), b = array(DType::boolean(), {2}, {0, 1});
  EXPECT_TRUE(close(run(logical_and, {a, b})[0], array(DType::boolean(), {2, 2}, {0, 0, 0, 1})));
  EXPECT_TRUE(close(run(logical_or, {a, b})[0], array(DType::boolean(), {2, 2}, {0, 1, 1, 1})));
  EXPECT_TRUE(close(run(logical_xor, {a, b})[0], array(DType::boolean(), {2, 2}, {0, 1, 1, 0})));
  EXPECT_TRUE(close(run(logical_not, {b})[0], array(DType::boolean(), {2}, {1, 0})));
  EXPECT_EQ(refusal(logical_and, {zeros(DType::int_(32), {2}), b})[0].code, relax::codes::dtype_not_supported);
}

TEST(comparison, classes_numbers) {
  for (const DType dtype : floats) {
    const Array x = array(dtype, {5}, {nan, infinity, -infinity, 0, 1.5});
    EXPECT_TRUE(close(run(isnan, {x})[0], array(DType::boolean(), {5}, {1, 0, 0, 0, 0})));
    EXPECT_TRUE(close(run(isinf, {x})[0], array(DType::boolean(), {5}, {0, 1, 1, 0, 0})));
    EXPECT_TRUE(close(run(isfinite, {x})[0], array(DType::boolean(), {5}, {0, 0, 0, 1, 1})));
  }
}

TEST(comparison, chooses_by_a_condition) {
  const Array condition = array(DType::boolean(), {2, 1, 1}, {1, 0});
  for (const auto& dtypes : {floats, integers, std::vector{DType::boolean()}})
    for (const DType dtype : dtypes) {
      const Array a = random_array(dtype, {3, 1}, 3), b = random_array(dtype, {4}, 4);
      EXPECT_TRUE(close(run(where, {condition, a, b})[0],
                        map(dtype, {2, 3, 4}, {condition, a, b}, [](const auto& v) { return v[0] ? v[1] : v[2]; })));
    }
  EXPECT_EQ(refusal(where, {condition, zeros(DType::float32(), {2}), zeros(DType::int_(8), {2})})[0].code,
            relax::codes::dtype_mismatch);
}

}  // namespace comparison_test
}  // namespace lathe::ops::testing
