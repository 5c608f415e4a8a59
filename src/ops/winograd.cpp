#include "ops/winograd.h"

#include <cmath>

namespace lathe::ops {

std::optional<Winograd> winograd(int64_t outputs) {
  if (outputs == 2) return Winograd{2, 4, {1}};
  if (outputs == 4) return Winograd{4, 6, {0.625, 1.5}};
  return std::nullopt;
}

std::vector<double> squares_polynomial(const std::vector<double>& points, size_t without) {
  std::vector<double> result{1};
  for (size_t p = 0; p < points.size(); ++p) {
    if (p == without) continue;
    result.insert(result.begin(), 0);  // times x
    for (size_t k = 0; k + 1 < result.size(); ++k) result[k] -= points[p] * points[p] * result[k + 1];
  }
  return result;
}

double Winograd::kernel(int64_t point, int64_t k) const {
  if (point == size - 1) return k == 2 ? 1 : 0;
  std::vector<double> all{0};
  for (const double p : points) all.insert(all.end(), {p, -p});
  const double own = all.at(static_cast<size_t>(point));
  double distance = 1;
  for (size_t i = 0; i < all.size(); ++i)
    if (static_cast<int64_t>(i) != point) distance *= own - all[i];
  return std::pow(own, static_cast<double>(k)) / distance;
}

}  // namespace lathe::ops
