#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace normalize_test {

using ir::make;

TEST(batch_norm, normalises_channels) {
  for (const DType dtype : floats)
    for (const auto& [shape, axis] :
         std::vector<std::pair<Extents, int64_t>>{{{2, 3, 4, 5}, 1}, {{2, 4, 3}, -1}, {{4, 3}, 1}, {{0, 3, 2}, 1}}) {
      const Array x = random_array(dtype, shape, 1);
      const Array gamma = random_array(dtype, {3}, 2, 0.5, 2), beta = random_array(dtype, {3}, 3);
      const Array mean = random_array(dtype, {3}, 4), variance = random_array(dtype, {3}, 5, 0.5, 2);
      const double epsilon = 1e-3;
      const auto a = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
      Array expected = zeros(dtype, shape);
      for_each_index(shape, [&](const Extents& i) {
        const auto c = static_cast<size_t>(i[a]);
        expected.at(i) =
            rounded(dtype, (x.at(i) - mean.values[c]) / std::sqrt(variance.values[c] + epsilon) * gamma.values[c] +
                               beta.values[c]);
      });
      EXPECT_TRUE(close(run(batch_norm, {x, gamma, beta, mean, variance}, make<BatchNormAttributes>(axis, epsilon))[0],
                        expected, 8, 8));
    }
}

TEST(batch_norm, takes_wider_parameters) {
  const Array x = random_array(DType::float_(16), {2, 3}, 1);
  const Array one = random_array(DType::float32(), {3}, 2, 1, 2);
  Array expected = zeros(DType::float_(16), {2, 3});
  for_each_index(expected.shape, [&](const Extents& i) {
    const double p = one.values[static_cast<size_t>(i[1])];
    expected.at(i) = rounded(DType::float_(16), (x.at(i) - p) / std::sqrt(p + 1e-5) * p + p);
  });
  EXPECT_TRUE(close(run(batch_norm, {x, one, one, one, one})[0], expected, 4, 4));
}

TEST(batch_norm, refuses_parameters_of_another_length) {
  const Array x = zeros(DType::float32(), {2, 3, 4}), three = zeros(DType::float32(), {3}),
              four = zeros(DType::float32(), {4});
  EXPECT_TRUE(refusal(batch_norm, {x, three, three, three, three}).empty());
  EXPECT_EQ(refusal(batch_norm, {x, three, four, three, three})[0].code, relax::codes::shape_mismatch);
  EXPECT_EQ(refusal(batch_norm, {x, three, three, three, three}, make<BatchNormAttributes>(int64_t{3}))[0].code,
            relax::codes::axis_out_of_range);
}

Array layer_norm_reference(const Array& x, const std::vector<size_t>& axes, const Array* gamma, const Array* beta,
                           double epsilon) {
  Array out = zeros(x.dtype, x.shape);
  Extents inner;
  for (const size_t a : axes) inner.push_back(x.shape[a]);
  for_each_index(x.shape, [&](const Extents& i) {
    double total = 0, squares = 0, count = 0;
    const auto each = [&](const std::function<void(double)>& f) {
      for_each_index(inner, [&](const Extents& k) {
        Extents cell = i;
        for (size_t d = 0; d < axes.size(); ++d) cell[axes[d]] = k[d];
        f(x.at(cell));
      });
    };
    each([&](double v) { total += v, ++count; });
    const double mean = total / count;
    each([&](double v) { squares += (v - mean) * (v - mean); });
    double y = (x.at(i) - mean) / std::sqrt(squares / count + epsilon);
    Extents within;
    for (const size_t a : axes) within.push_back(i[a]);
    if (gamma) y *= gamma->at(broadcast_index(gamma->shape, within));
    if (beta) y += beta->at(broadcast_index(beta->shape, within));
    out.at(i) = rounded(x.dtype, y);
  });
  return out;
}

TEST(layer_norm, normalises_any_axes) {
  const std::vector<std::pair<Extents, Extents>> cases{{{2, 3, 7}, {-1}}, {{2, 3, 4}, {1, 2}}, {{2, 3, 4}, {0, 1, 2}},
                                                       {{3, 5, 2}, {1}},  {{5, 4, 3}, {-3}},   {{0, 4}, {-1}}};
  for (const auto& [shape, axes] : cases)
    for (const DType dtype : floats) {
      std::vector<size_t> normal;
      Extents extents;
      for (const int64_t a : axes)
        normal.push_back(static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(shape.size()) : a));
      for (const size_t a : normal) extents.push_back(shape[a]);
      const Array x = random_array(dtype, shape, 1), gamma = random_array(dtype, extents, 2),
                  beta = random_array(dtype, extents, 3);
      const auto attributes = make<LayerNormAttributes>(axes, 1e-3);
      EXPECT_TRUE(close(run(layer_norm, {x, gamma, beta}, attributes)[0],
                        layer_norm_reference(x, normal, &gamma, &beta, 1e-3), 32, 4));
      EXPECT_TRUE(close(run(layer_norm, {x, gamma}, attributes)[0],
                        layer_norm_reference(x, normal, &gamma, nullptr, 1e-3), 32, 4));
      EXPECT_TRUE(
          close(run(layer_norm, {x}, attributes)[0], layer_norm_reference(x, normal, nullptr, nullptr, 1e-3), 32, 4));
    }
}

TEST(layer_norm, refuses_what_does_not_fit) {
  const Array x = zeros(DType::float32(), {2, 3});
  EXPECT_EQ(refusal(layer_norm, {x, zeros(DType::float32(), {2})})[0].code, relax::codes::cannot_broadcast);
  EXPECT_EQ(refusal(layer_norm, {x}, make<LayerNormAttributes>(Extents{1, -1}))[0].code,
            relax::codes::axis_out_of_range);
}

}  // namespace normalize_test
}  // namespace lathe::ops::testing
