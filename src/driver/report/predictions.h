// Predicted against measured times: how well the model of cost puts kernels in order.
#pragma once

#include "support/std.h"

namespace lathe::driver {

struct Prediction {
  std::string rule;
  double predicted = 0, measured = 0;  // of one call, in the same unit
};

struct RankCorrelation {
  std::string rule;
  size_t kernels = 0;
  double value = 0;  // from -1, the wrong way round, to 1, the same order
  double ratio = 0;  // predicted over measured, the geometric mean
};

// Spearman's rank correlation, equal values sharing their mean rank, of the kernels of each rule that has at least
// three, and of all kernels together (rule "all").
std::vector<RankCorrelation> rank_correlations(const std::vector<Prediction>& predictions);

}  // namespace lathe::driver
