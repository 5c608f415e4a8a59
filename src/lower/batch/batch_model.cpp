#include "lower/batch/batch_model.h"

#include <algorithm>
#include <cmath>

namespace lathe::lower {

namespace {

constexpr int64_t most_pieces = 16;

double cost_of_a_byte(double moved, const target::Target& target) {
  const double near = 4.0 * static_cast<double>(target.cache_bytes(2, 512 << 10));
  return std::clamp(std::log2(moved / near), 0.0, 4.0);
}

}  // namespace

BatchSplit best_batch_split(const std::vector<BatchStep>& run, int64_t rows, const target::Target& target) {
  BatchSplit best;
  double most = 0;
  for (int64_t pieces = 2; pieces <= std::min(rows, most_pieces); ++pieces) {
    if (rows % pieces != 0) continue;
    // What a step's results save counts from the step on that reads them last.
    std::vector<double> saved(run.size());
    double all = 0;
    for (size_t i = 0; i < run.size(); ++i) {
      const BatchStep& step = run[i];
      const auto moved = static_cast<double>(step.moved);
      const double nearer = cost_of_a_byte(moved, target) - cost_of_a_byte(moved / static_cast<double>(pieces), target);
      if (step.last_use < run.size())
        saved[step.last_use] += static_cast<double>(step.written) * static_cast<double>(1 + step.reads) * nearer;
      if (step.same > target.cache_bytes(1, 32 << 10))
        all -= static_cast<double>(step.same) * static_cast<double>(pieces - 1);
      all += saved[i];
      if (all > most) {
        most = all;
        best = {i + 1, pieces};
      }
    }
  }
  return best;
}

}  // namespace lathe::lower
