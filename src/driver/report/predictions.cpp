#include "driver/report/predictions.h"

namespace lathe::driver {
namespace {

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t first = 0, end = 0; first < order.size(); first = end) {
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (size_t i = first; i < end; ++i) ranks[order[i]] = static_cast<double>(first + end - 1) / 2;
  }
  return ranks;
}

// Pearson's; 0 where one of the two does not vary.
double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

}  // namespace

std::vector<RankCorrelation> rank_correlations(const std::vector<Prediction>& predictions) {
  constexpr size_t fewest = 3;
  struct Times {
    std::vector<double> predicted, measured;
    double logarithms = 0;
  };
  std::map<std::string, Times> by_rule;
  for (const Prediction& one : predictions) {
    if (!(one.predicted > 0) || !(one.measured > 0)) continue;
    for (const std::string& rule : {one.rule, std::string("all")}) {
      Times& times = by_rule[rule];
      times.predicted.push_back(one.predicted);
      times.measured.push_back(one.measured);
      times.logarithms += std::log(one.predicted / one.measured);
    }
  }
  std::vector<RankCorrelation> found;
  for (const auto& [rule, times] : by_rule)
    if (times.predicted.size() >= fewest)
      found.push_back({rule, times.predicted.size(), correlation(ranks(times.predicted), ranks(times.measured)),
                       std::exp(times.logarithms / static_cast<double>(times.predicted.size()))});
  return found;
}

}  // namespace lathe::driver
