#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace activation_test {

using ir::make;

struct Case {
  const Operator* op;
  relax::AttributesRef attributes;
  std::function<double(double)> reference;
};

std::vector<Case> cases() {
  const double alpha = 1.67326319217681884765625, gamma = 1.05070102214813232421875;
  return {
      {&relu, {}, [](double x) { return std::max(x, 0.0); }},
      {&leakyrelu, make<LeakyReluAttributes>(0.1), [](double x) { return x < 0 ? 0.1 * x : x; }},
      {&elu, make<EluAttributes>(0.7), [](double x) { return x < 0 ? 0.7 * std::expm1(x) : x; }},
      {&selu, {}, [=](double x) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); }},
      {&hard_sigmoid, make<HardSigmoidAttributes>(0.3, 0.4),
       [](double x) { return std::min(1.0, std::max(0.0, 0.3 * x + 0.4)); }},
      {&hard_swish, {}, [](double x) { return x * std::min(1.0, std::max(0.0, x / 6 + 0.5)); }},
      {&softplus, {}, [](double x) { return std::log1p(std::exp(x)); }},
      {&gelu, {}, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
      {&gelu_tanh,
       {},
       [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
      {&silu, {}, [](double x) { return x / (1 + std::exp(-x)); }},
  };
}

TEST(activation, computes_every_float) {
  for (const Case& c : cases())
    for (const DType dtype : floats)
      for (const Extents& shape : std::vector<Extents>{{5, 7}, {}, {0}}) {
        const Array x = random_array(dtype, shape, 1, -5, 5);
        EXPECT_TRUE(close(run(*c.op, {x}, c.attributes)[0],
                          map(dtype, shape, {x}, [&](const auto& v) { return c.reference(v[0]); }), 6))
            << c.op->name;
      }
}

TEST(activation, stays_finite_far_out) {
  const Array x = array(DType::float32(), {2}, {300, -300});
  EXPECT_TRUE(close(run(softplus, {x})[0], array(DType::float32(), {2}, {300, 0})));
  EXPECT_TRUE(close(run(silu, {x})[0], array(DType::float32(), {2}, {300, 0})));
}

TEST(activation, lets_nan_through_relu) {
  const Array x = array(DType::float32(), {2}, {std::numeric_limits<double>::quiet_NaN(), -1});
  EXPECT_TRUE(std::isnan(run(relu, {x})[0].values[0]));
}

TEST(activation, rectifies_integers) {
  for (const DType dtype : integers) {
    const Array x = random_array(dtype, {9}, 2);
    EXPECT_TRUE(close(run(relu, {x})[0], map(dtype, {9}, {x}, [](const auto& v) { return std::max(v[0], 0.0); })));
  }
}

TEST(activation, broadcasts_the_slope_of_prelu) {
  for (const DType dtype : floats) {
    const Array x = random_array(dtype, {2, 3, 4}, 3), slope = random_array(dtype, {3, 1}, 4);
    EXPECT_TRUE(close(run(prelu, {x, slope})[0],
                      map(dtype, {2, 3, 4}, {x, slope}, [](const auto& v) { return v[0] < 0 ? v[1] * v[0] : v[0]; }),
                      2));
  }
  const auto failed = refusal(prelu, {zeros(DType::float32(), {3}), zeros(DType::float32(), {2, 3})});
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].code, relax::codes::cannot_broadcast);
}

}  // namespace activation_test
}  // namespace lathe::ops::testing
