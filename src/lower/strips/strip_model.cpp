#include "lower/strips/strip_model.h"

#include <algorithm>
#include <cmath>

namespace lathe::lower {

namespace {

constexpr double hides_a_byte = 5;  // operations

}  // namespace

double distance_in_caches(int64_t bytes, const target::Target& target) {
  const double near = static_cast<double>(target.cache_bytes(2, 512 << 10)) * std::max(1, target.cores / 2);
  return std::clamp((std::log2(static_cast<double>(bytes) / near) + 1) / 2, 0.0, 3.0);
}

double saved_by_strips(const std::vector<StripStep>& run, int64_t strips, const target::Target& target,
                       const StripCosts& costs) {
  // What waiting for a byte between two kernels costs the kernel less.
  const auto nearer = [&](const StripStep& step) {
    const double waits = std::min(1.0, hides_a_byte * static_cast<double>(step.moved) / std::max(step.operations, 1.0));
    return waits * (distance_in_caches(step.moved, target) - distance_in_caches(step.held, target));
  };
  double saved = 0;
  for (const StripStep& step : run) {
    const auto written = static_cast<double>(step.written), more = static_cast<double>(strips - 1);
    if (!step.is_kept) saved += written * nearer(step);
    for (const size_t reader : step.readers) saved += written * nearer(run[reader]);
    saved -= static_cast<double>(step.copied) * more;
    if (step.same > target.cache_bytes(1, 32 << 10)) saved -= static_cast<double>(step.same) * more;
    saved -= costs.call * more;
  }
  return saved;
}

}  // namespace lathe::lower
