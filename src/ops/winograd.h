// Winograd's algorithm for convolutions of 3x3 with stride one, F(m x m, 3 x 3): m x m outputs from (m + 2)^2 products
// an input channel instead of 9 m^2. Cook and Toom's construction over the points 0, infinity and pairs of opposite
// ones, whose even and odd parts are shared.
//
// S. Winograd, Arithmetic Complexity of Computations, 1980; A. Lavin and S. Gray, "Fast Algorithms for Convolutional
// Neural Networks", CVPR 2016. For points and errors: B. Barabasz et al., "Error Analysis and Improving the Accuracy of
// Winograd Convolution for Deep Neural Networks", ACM TOMS 46(4), 2020.
#pragma once

#include "support/std.h"

namespace lathe::ops {

// One dimension of the algorithm: `outputs` values from `size` products.
struct Winograd {
  int64_t outputs = 0, size = 0;
  std::vector<double> points;  // the positive ones: each stands for itself and its opposite

  // Row `point`, column `k` of the matrix that transforms the kernel's three values.
  double kernel(int64_t point, int64_t k) const;
};

// F(2, 3) over 0, ±1, infinity, or F(4, 3) over 0, ±5/8, ±3/2, infinity: all powers that occur are exact in float32,
// and the error is a quarter of that over 0, ±1, ±2. Nothing for other tiles.
std::optional<Winograd> winograd(int64_t outputs);

// What the sums below need of values: floats, or expressions.
template <class V>
struct WinogradValues {
  std::function<V(const V&, double)> scaled;
};

// x + y * factor
template <class V>
V plus_scaled(const V& x, const V& y, double factor, const WinogradValues<V>& values) {
  if (factor == 1) return x + y;
  if (factor == -1) return x - y;
  return x + values.scaled(y, factor);
}

// The coefficients of the product of (x - p^2) over `points` but number `without`, lowest first.
std::vector<double> squares_polynomial(const std::vector<double>& points, size_t without);

// The transformed values of `size` neighbouring inputs, one a point: 0, then pairs p and -p, then infinity.
template <class V>
std::vector<V> winograd_input(const Winograd& w, const std::vector<V>& d, const WinogradValues<V>& values) {
  // Sum of coefficient k times d[first + 2k], from the highest, whose coefficient is one.
  const auto every_other = [&](const std::vector<double>& coefficients, size_t first) {
    V sum = d[first + 2 * (coefficients.size() - 1)];
    for (size_t k = coefficients.size() - 1; k-- > 0;)
      sum = plus_scaled(sum, d[first + 2 * k], coefficients[k], values);
    return sum;
  };
  const std::vector<double> all = squares_polynomial(w.points, w.points.size());
  std::vector<V> result{every_other(all, 0)};
  for (size_t p = 0; p < w.points.size(); ++p) {
    const std::vector<double> others = squares_polynomial(w.points, p);
    const V even = every_other(others, 2), odd = every_other(others, 1);
    result.push_back(plus_scaled(even, odd, w.points[p], values));
    result.push_back(plus_scaled(even, odd, -w.points[p], values));
  }
  result.push_back(every_other(all, 1));
  return result;
}

// The `outputs` values of `size` products.
template <class V>
std::vector<V> winograd_output(const Winograd& w, const std::vector<V>& m, const WinogradValues<V>& values) {
  std::vector<V> result;
  for (int64_t r = 0; r < w.outputs; ++r) {
    std::optional<V> sum;
    if (r == 0) sum = m[0];
    for (size_t p = 0; p < w.points.size(); ++p) {
      const V &plus = m[1 + 2 * p], &minus = m[2 + 2 * p];
      const V part = r % 2 == 0 ? V(plus + minus) : V(plus - minus);
      const double power = std::pow(w.points[p], static_cast<double>(r));
      sum = sum ? plus_scaled(*sum, part, power, values) : power == 1 ? part : values.scaled(part, power);
    }
    if (r + 1 == w.outputs) sum = *sum + m.back();
    result.push_back(*sum);
  }
  return result;
}

}  // namespace lathe::ops
