#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace softmax_test {

using ir::make;

Array reference(const Array& x, int64_t axis, bool logarithm) {
  Array out = zeros(x.dtype, x.shape);
  const auto a = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.shape.size()) : axis);
  for_each_index(x.shape, [&](const Extents& i) {
    double total = 0;
    Extents j = i;
    for (j[a] = 0; j[a] < x.shape[a]; ++j[a]) total += std::exp(x.at(j));
    out.at(i) = rounded(x.dtype, logarithm ? x.at(i) - std::log(total) : std::exp(x.at(i)) / total);
  });
  return out;
}

TEST(softmax, normalises_along_any_axis) {
  for (const Extents& shape : std::vector<Extents>{{3, 4, 5}, {7}, {2, 1, 3}, {0, 4}, {4, 0}})
    for (int64_t axis = -static_cast<int64_t>(shape.size()); axis < static_cast<int64_t>(shape.size()); ++axis)
      for (const DType dtype : floats) {
        const Array x = random_array(dtype, shape, 1);
        EXPECT_TRUE(close(run(softmax, {x}, make<SoftmaxAttributes>(axis))[0], reference(x, axis, false)));
        EXPECT_TRUE(close(run(log_softmax, {x}, make<SoftmaxAttributes>(axis))[0], reference(x, axis, true), 8));
      }
}

TEST(softmax, does_not_overflow) {
  const Array x = array(DType::float32(), {3}, {1000, 1000, -1000});
  EXPECT_TRUE(close(run(softmax, {x})[0], array(DType::float32(), {3}, {0.5, 0.5, 0})));
  EXPECT_TRUE(
      close(run(log_softmax, {x})[0], array(DType::float32(), {3}, {-std::log(2), -std::log(2), -2000 - std::log(2)})));
}

TEST(softmax, has_no_terms_below_the_normal_numbers) {
  const Array x = array(DType::float32(), {2, 4}, {100, 15, 25, -1e30, 0, -86, -79, 1});
  const Array got = run(softmax, {x}, make<SoftmaxAttributes>(int64_t{-1}))[0];
  EXPECT_TRUE(close(got, reference(array(DType::float32(), {2, 4}, {0, -85, -75, -1e30, 0, -86, -79, 1}), -1, false)));
  EXPECT_EQ(got.at({0, 1}), 0);
  EXPECT_EQ(got.at({0, 3}), 0);
  EXPECT_GT(got.at({0, 2}), 2e-33);
  EXPECT_EQ(got.at({1, 1}), 0);
}

TEST(softmax, has_terms_that_are_not_divided_yet) {
  for (const DType dtype : floats)
    for (const double scale : {1.0, 0.125, 3.0}) {
      const Array x = random_array(dtype, {3, 4, 5}, 2);
      Array wanted = zeros(dtype, x.shape);
      for_each_index(x.shape, [&](const Extents& i) {
        double largest = x.at(i);
        for (Extents j{i[0], 0, i[2]}; j[1] < 4; ++j[1]) largest = std::max(largest, x.at(j));
        wanted.at(i) = rounded(dtype, std::exp(scale * (x.at(i) - largest)));
      });
      EXPECT_TRUE(close(run(softmax_terms, {x}, make<SoftmaxTermsAttributes>(int64_t{1}, scale))[0], wanted, 8));
    }
}

TEST(softmax, refuses_a_scale_of_its_terms_that_is_not_above_0) {
  for (const double scale : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    const auto failed =
        refusal(softmax_terms, {zeros(DType::float32(), {2, 3})}, make<SoftmaxTermsAttributes>(int64_t{-1}, scale));
    ASSERT_EQ(failed.size(), 1u);
    EXPECT_EQ(failed[0].message, "the scale of nn.softmax_terms is not above 0");
  }
}

TEST(softmax, refuses_an_axis_outside) {
  const auto failed = refusal(softmax, {zeros(DType::float32(), {2, 3})}, make<SoftmaxAttributes>(int64_t{2}));
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].code, relax::codes::axis_out_of_range);
  EXPECT_EQ(failed[0].message, "axis 2 of nn.softmax is outside a tensor of rank 2");
}

}  // namespace softmax_test
}  // namespace lathe::ops::testing
