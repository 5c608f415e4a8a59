#include "ops/winograd.h"

#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace winograd_test {

using ir::make;
using Matrix = std::vector<std::vector<double>>;

// Cook and Toom's matrices from the points alone, by interpolation: no sums are shared here.
struct Matrices {
  Matrix input, kernel, output;  // [size][size], [size][3], [outputs][size]
};

// The coefficients of the product of (x - point), lowest first.
std::vector<double> polynomial(const std::vector<double>& points) {
  std::vector<double> result{1};
  for (const double point : points) {
    std::vector<double> next(result.size() + 1, 0);
    for (size_t k = 0; k < result.size(); ++k) {
      next[k + 1] += result[k];
      next[k] -= point * result[k];
    }
    result = next;
  }
  return result;
}

Matrices matrices(int64_t tile) {
  const std::vector<double> points =
      tile == 2 ? std::vector<double>{0, 1, -1} : std::vector<double>{0, 0.625, -0.625, 1.5, -1.5};
  const size_t size = points.size() + 1;
  Matrices m{Matrix(size, std::vector<double>(size, 0)), Matrix(size, std::vector<double>(3, 0)),
             Matrix(static_cast<size_t>(tile), std::vector<double>(size, 0))};
  for (size_t i = 0; i < points.size(); ++i) {
    std::vector<double> others;
    double distance = 1;
    for (size_t j = 0; j < points.size(); ++j) {
      if (j == i) continue;
      others.push_back(points[j]);
      distance *= points[i] - points[j];
    }
    const std::vector<double> row = polynomial(others);
    std::copy(row.begin(), row.end(), m.input[i].begin());
    for (size_t k = 0; k < 3; ++k) m.kernel[i][k] = std::pow(points[i], static_cast<double>(k)) / distance;
    for (size_t r = 0; r < m.output.size(); ++r) m.output[r][i] = std::pow(points[i], static_cast<double>(r));
  }
  m.input.back() = polynomial(points);
  m.kernel.back()[2] = 1;
  m.output.back().back() = 1;
  return m;
}

// Element (p, q) of A X A', where x(a, b) is an element of X.
double both_ways(const Matrix& a, size_t p, size_t q, const std::function<double(int64_t, int64_t)>& x) {
  double sum = 0;
  for (size_t k = 0; k < a[p].size(); ++k)
    for (size_t l = 0; l < a[q].size(); ++l)
      sum += a[p][k] * a[q][l] * x(static_cast<int64_t>(k), static_cast<int64_t>(l));
  return sum;
}

int64_t tiles(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }

relax::AttributesRef of_tile(int64_t tile, Extents image = {}) {
  return make<WinogradAttributes>(tile, std::move(image));
}

TEST(winograd_kernel, is_the_product_with_the_matrices) {
  for (const int64_t tile : {2, 4})
    for (const auto& [outputs, inputs] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 5}, {4, 2}, {0, 2}})
      for (const DType dtype : {DType::float32(), DType::float_(64)}) {
        const Matrices m = matrices(tile);
        const auto size = static_cast<int64_t>(m.kernel.size());
        const Array kernel = random_array(dtype, {outputs, inputs, 3, 3}, 1);
        Array expected = zeros(dtype, {size * size, inputs, outputs});
        for_each_index(expected.shape, [&](const Extents& i) {
          expected.at(i) =
              rounded(dtype, both_ways(m.kernel, static_cast<size_t>(i[0] / size), static_cast<size_t>(i[0] % size),
                                       [&](int64_t a, int64_t b) { return kernel.at({i[2], i[1], a, b}); }));
        });
        EXPECT_TRUE(close(run(winograd_kernel, {kernel}, of_tile(tile), {.symbolic = false})[0], expected, 8, 4));
      }
}

TEST(winograd_input, is_the_product_with_the_matrices) {
  for (const int64_t tile : {2, 4})
    for (const Extents& image :
         std::vector<Extents>{{1, 1, 1, 1}, {2, 2, 3, 5}, {1, 3, 1, 4}, {0, 1, 1, 2}, {3, 1, 1, 0}, {1, 0, 2, 1}})
      for (const DType dtype : {DType::float32(), DType::float_(64)}) {
        const Matrices m = matrices(tile);
        const auto size = static_cast<int64_t>(m.input.size());
        const Array x = random_array(dtype, {image[0], image[1] * tile + 2, image[2] * tile + 2, image[3]}, 2);
        Array expected = zeros(dtype, {size * size, image[0] * image[1] * image[2], image[3]});
        for_each_index(expected.shape, [&](const Extents& i) {
          const int64_t n = i[1] / (image[1] * image[2]), top = i[1] / image[2] % image[1] * tile;
          const int64_t left = i[1] % image[2] * tile;
          expected.at(i) =
              rounded(dtype, both_ways(m.input, static_cast<size_t>(i[0] / size), static_cast<size_t>(i[0] % size),
                                       [&](int64_t a, int64_t b) { return x.at({n, top + a, left + b, i[2]}); }));
        });
        EXPECT_TRUE(close(run(winograd_input_transform, {x}, of_tile(tile), {.symbolic = false})[0], expected, 8, 32));
      }
}

TEST(winograd_output, is_the_product_with_the_matrices) {
  for (const int64_t tile : {2, 4})
    for (const Extents& image :
         std::vector<Extents>{{1, 1, 1, 1}, {2, 7, 5, 3}, {1, 4, 8, 2}, {1, 2, 1, 5}, {0, 3, 3, 2}, {2, 3, 4, 0}})
      for (const DType dtype : {DType::float32(), DType::float_(64)}) {
        const Matrices m = matrices(tile);
        const auto size = static_cast<int64_t>(m.input.size());
        const int64_t rows = tiles(image[1], tile), columns = tiles(image[2], tile);
        const Array x = random_array(dtype, {size * size, image[0] * rows * columns, image[3]}, 3);
        Array expected = zeros(dtype, image);
        for_each_index(image, [&](const Extents& i) {
          const int64_t t = (i[0] * rows + i[1] / tile) * columns + i[2] / tile;
          expected.at(i) =
              rounded(dtype, both_ways(m.output, static_cast<size_t>(i[1] % tile), static_cast<size_t>(i[2] % tile),
                                       [&](int64_t a, int64_t b) { return x.at({a * size + b, t, i[3]}); }));
        });
        const Extents given(image.begin(), image.end() - 1);
        EXPECT_TRUE(
            close(run(winograd_output_transform, {x}, of_tile(tile, given), {.symbolic = false})[0], expected, 8, 256));
      }
}

// The three with a product between them are the convolution.
TEST(winograd, computes_a_convolution) {
  const DType dtype = DType::float_(64);
  for (const int64_t tile : {2, 4})
    for (const Extents& image : std::vector<Extents>{{1, 1, 1}, {2, 5, 7}, {1, 8, 4}}) {
      const int64_t rows = tiles(image[1], tile), columns = tiles(image[2], tile), inputs = 3, outputs = 4;
      const Array kernel = random_array(dtype, {outputs, inputs, 3, 3}, 4);
      const Array x = random_array(dtype, {image[0], rows * tile + 2, columns * tile + 2, inputs}, 5);
      Array expected = zeros(dtype, {image[0], image[1], image[2], outputs});
      for_each_index(expected.shape, [&](const Extents& i) {
        for (int64_t c = 0; c < inputs; ++c)
          for (int64_t a = 0; a < 3; ++a)
            for (int64_t b = 0; b < 3; ++b)
              expected.at(i) += x.at({i[0], i[1] + a, i[2] + b, c}) * kernel.at({i[3], c, a, b});
      });
      const Array points = run(winograd_input_transform, {x}, of_tile(tile), {.symbolic = false})[0];
      const Array weights = run(winograd_kernel, {kernel}, of_tile(tile), {.symbolic = false})[0];
      const Array products = run(matmul, {points, weights}, {}, {.symbolic = false})[0];
      EXPECT_TRUE(close(run(winograd_output_transform, {products}, of_tile(tile, image), {.symbolic = false})[0],
                        expected, 1024, 32));
    }
}

TEST(winograd, refuses_what_does_not_fit) {
  const auto f = [](Extents shape) { return zeros(DType::float32(), std::move(shape)); };
  const auto wrong = [](const support::Diagnostics& found) { return found.at(0); };
  EXPECT_EQ(wrong(refusal(winograd_kernel, {f({2, 3, 3, 3})}, of_tile(3))).message,
            "nn.winograd_kernel has tiles of 2 or 4 outputs, not of 3");
  EXPECT_EQ(wrong(refusal(winograd_kernel, {f({2, 3, 3, 2})}, of_tile(4))).code, relax::codes::shape_mismatch);
  EXPECT_EQ(wrong(refusal(winograd_kernel, {f({2, 3, 3})}, of_tile(4))).code, relax::codes::wrong_rank);
  EXPECT_EQ(wrong(refusal(winograd_kernel, {zeros(DType::int_(32), {2, 3, 3, 3})}, of_tile(4))).code,
            relax::codes::dtype_not_supported);
  EXPECT_EQ(wrong(refusal(winograd_input_transform, {f({1, 7, 6, 2})}, of_tile(4))).message,
            "nn.winograd_input takes whole tiles of 4 outputs, and two rows and columns more, not "
            "float32[1, 7, 6, 2]");
  EXPECT_EQ(wrong(refusal(winograd_input_transform, {f({1, 6, 0, 2})}, of_tile(2))).code, relax::codes::shape_mismatch);
  EXPECT_EQ(wrong(refusal(winograd_output_transform, {f({36, 3, 2})}, of_tile(4, {1, 8, 8}))).message,
            "nn.winograd_output of float32[36, 3, 2]: 1 images of 8x8 have 36 points of 4 tiles");
  EXPECT_EQ(wrong(refusal(winograd_output_transform, {f({16, 4, 2})}, of_tile(4, {1, 8, 8}))).code,
            relax::codes::shape_mismatch);
  EXPECT_EQ(wrong(refusal(winograd_output_transform, {f({36, 4, 2})}, of_tile(4))).code, relax::codes::wrong_attribute);
}

}  // namespace winograd_test
}  // namespace lathe::ops::testing
