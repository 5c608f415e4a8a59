#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace unary_test {

const double nan = std::numeric_limits<double>::quiet_NaN();

struct Case {
  const Operator* op;
  double (*reference)(double);
  double low = -4, high = 4;
};
const Case functions[] = {
    {&negative, [](double x) { return -x; }},
    {&abs, [](double x) { return std::fabs(x); }},
    {&sign, [](double x) { return static_cast<double>((x > 0) - (x < 0)); }},
    {&floor, [](double x) { return std::floor(x); }},
    {&ceil, [](double x) { return std::ceil(x); }},
    {&round, [](double x) { return std::nearbyint(x); }},
    {&sqrt, [](double x) { return std::sqrt(x); }, 0.01, 9},
    {&rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0.01, 9},
    {&exp, [](double x) { return std::exp(x); }},
    {&log, [](double x) { return std::log(x); }, 0.01, 9},
    {&sin, [](double x) { return std::sin(x); }},
    {&cos, [](double x) { return std::cos(x); }},
    {&tan, [](double x) { return std::tan(x); }, -1.2, 1.2},
    {&acos, [](double x) { return std::acos(x); }, -0.9, 0.9},
    {&asin, [](double x) { return std::asin(x); }, -0.9, 0.9},
    {&atan, [](double x) { return std::atan(x); }},
    {&cosh, [](double x) { return std::cosh(x); }},
    {&sinh, [](double x) { return std::sinh(x); }},
    {&acosh, [](double x) { return std::acosh(x); }, 1.2, 9},
    {&asinh, [](double x) { return std::asinh(x); }},
    {&atanh, [](double x) { return std::atanh(x); }, -0.9, 0.9},
    {&tanh, [](double x) { return std::tanh(x); }},
    {&erf, [](double x) { return std::erf(x); }},
    {&sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
};

TEST(unary, computes_every_float) {
  for (const Case& c : functions)
    for (const DType dtype : floats)
      for (const Extents& shape : std::vector<Extents>{{3, 7}, {}, {0, 4}}) {
        const Array x = random_array(dtype, shape, 1, c.low, c.high);
        EXPECT_TRUE(close(run(*c.op, {x})[0], map(dtype, shape, {x}, [&](const auto& v) { return c.reference(v[0]); })))
            << c.op->name;
      }
}

TEST(unary, computes_integers_where_they_have_a_meaning) {
  for (const DType dtype : integers) {
    const Array x = random_array(dtype, {11}, 2, -9, 9);
    EXPECT_TRUE(close(run(abs, {x})[0], map(dtype, {11}, {x}, [](const auto& v) { return std::fabs(v[0]); })));
    EXPECT_TRUE(close(run(sign, {x})[0], map(dtype, {11}, {x}, [](const auto& v) { return (v[0] > 0) - (v[0] < 0); })));
    if (dtype.is_int())
      EXPECT_TRUE(close(run(negative, {x})[0], map(dtype, {11}, {x}, [](const auto& v) { return -v[0]; })));
  }
}

TEST(unary, rounds_halves_to_even) {
  const Array x = array(DType::float32(), {6}, {0.5, 1.5, 2.5, -0.5, -1.5, -2.5});
  EXPECT_TRUE(close(run(round, {x})[0], array(DType::float32(), {6}, {0, 2, 2, 0, -2, -2}), 0));
}

TEST(unary, keeps_nan_and_the_sign_of_zero) {
  const Array x = array(DType::float32(), {2}, {nan, 0.0});
  EXPECT_TRUE(std::isnan(run(sign, {x})[0].values[0]));
  EXPECT_TRUE(std::signbit(run(negative, {x})[0].values[1]));
}

TEST(unary, refuses_integers_and_bools) {
  const auto failed = refusal(exp, {zeros(DType::int_(32), {2})});
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].code, relax::codes::dtype_not_supported);
  EXPECT_EQ(failed[0].message, "exp takes floating-point tensors, but 'x' is int32");
  EXPECT_EQ(refusal(negative, {zeros(DType::boolean(), {2})})[0].code, relax::codes::dtype_not_supported);
  EXPECT_EQ(refusal(exp, {})[0].code, relax::codes::wrong_arguments);
  EXPECT_EQ(refusal(exp, {Extents{2}})[0].code, relax::codes::wrong_arguments);
}

}  // namespace unary_test
}  // namespace lathe::ops::testing
