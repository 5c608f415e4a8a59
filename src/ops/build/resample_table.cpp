// What resampling reads, as tables, where it is known when the model is compiled.
#include "ir/floor.h"
#include "ops/build/resample_positions.h"
#include "support/mutation.h"

namespace lathe::ops::build {

LATHE_FAULT(resample_shifts, "ops_test", "resample: a closed form is believed after its first element");

namespace {

// Beyond this a position is not told apart from the next: by so much an element may be off that is said to have no
// weight. A weight is continuous there.
double slack(double position) { return 1e-11 * std::max(1.0, std::fabs(position)); }

// How much of a position a filter takes less than one element for: one that shrinks is as much wider.
double shrinks_by(const Resampling& how, double scale) { return how.antialias ? std::min(scale, 1.0) : 1.0; }

// How far from a position elements have weights.
double reach_of(const Resampling& how, double scale) {
  return (how.interpolation == Interpolation::linear ? 1 : 2) / shrinks_by(how, scale);
}

}  // namespace

bool is_small_table(const Resampling& how, int64_t extent, double scale) {
  constexpr double most_elements = 1 << 18;
  const double taps = how.interpolation == Interpolation::nearest ? 1 : 2 * reach_of(how, scale) + 1;
  return taps >= 1 && taps * static_cast<double>(extent) <= most_elements;  // a scale may be anything
}

ResampleTable resample_table(const Resampling& how, int64_t own, int64_t extent, double scale,
                             const std::pair<double, double>& range) {
  const Positions<double> positions{
      how, static_cast<double>(own), static_cast<double>(extent), scale, range.first, range.second};
  const double last = static_cast<double>(own - 1);
  ResampleTable table;
  std::vector<double> at;
  for (int64_t i = 0; i < extent; ++i) at.push_back(positions(static_cast<double>(i)));
  if (how.coordinates == Coordinates::crop_and_resize)
    for (const double p : at) table.outside.push_back(p < 0 || p > last);
  const auto whole = [](double x) { return static_cast<int64_t>(std::clamp(x, -1e15, 1e15)); };
  if (how.interpolation == Interpolation::nearest) {
    for (const double p : at) table.index.push_back(whole(nearest_to(how.nearest, p)));
    return table;
  }
  const double shrinks = shrinks_by(how, scale), reach = reach_of(how, scale);
  int64_t taps = 1;
  for (const double p : at) {
    table.index.push_back(whole(std::ceil(p - reach + slack(p))));
    taps = std::max(taps, whole(std::floor(p + reach - slack(p))) - table.index.back() + 1);
  }
  table.weights.assign(static_cast<size_t>(taps), {});
  for (size_t i = 0; i < at.size(); ++i) {
    double total = 0;
    for (int64_t k = 0; k < taps; ++k) {
      const double element = static_cast<double>(table.index[i] + k);
      double weight = weight_at(how.interpolation, how.cubic_a, (element - at[i]) * shrinks);
      if (how.exclude_outside && (element < 0 || element > last)) weight = 0;
      table.weights[static_cast<size_t>(k)].push_back(weight);
      total += weight;
    }
    if (how.antialias || how.exclude_outside)
      for (std::vector<double>& tap : table.weights) tap[i] /= total;
  }
  return table;
}

std::optional<Digits> as_digits(const std::vector<int64_t>& index) {
  if (index.empty()) return Digits();
  const auto count = static_cast<int64_t>(index.size());
  for (int64_t period = 1; period <= largest_period; ++period) {
    // Over a whole period the table moves by the step; where it is shorter, by any.
    std::vector<int64_t> steps;
    if (count > period)
      steps.push_back(index[static_cast<size_t>(period)] - index[0]);
    else
      for (int64_t step = 0; step <= 4 * period; ++step) steps.push_back(step);
    for (const int64_t step : steps)
      for (int64_t shift = period * index[0]; shift < period * (index[0] + 1); ++shift) {
        bool fits = true;
        const int64_t checked = support::flip(resample_shifts) ? 1 : count;
        for (int64_t i = 0; i < checked && fits; ++i)
          fits = ir::floor_div(step * i + shift, period) == index[static_cast<size_t>(i)];
        if (fits) return Digits{step, shift, period};
      }
  }
  return std::nullopt;
}

// By whole numbers: positions are n / (2 factor), with n even or odd as i is doubled. In float64 they fall on the same
// side of halves: a quotient that is representable is exact, and others are further away than a rounding.
std::optional<Digits> nearest_digits(const Resampling& how, double scale) {
  if (how.interpolation != Interpolation::nearest || scale < 1 || scale > 1 << 20 || scale != std::floor(scale))
    return std::nullopt;
  const auto factor = static_cast<int64_t>(scale);
  int64_t doubled = 0;  // what is added to 2 i
  if (how.coordinates == Coordinates::half_pixel)
    doubled = 1 - factor;
  else if (how.coordinates != Coordinates::asymmetric)
    return std::nullopt;
  switch (how.nearest) {
    case Nearest::floor:
      break;
    case Nearest::ceil:
      doubled += 2 * factor - 1;
      break;
    case Nearest::round_prefer_floor:
      doubled += factor - 1;
      break;
    case Nearest::round_prefer_ceil:
      doubled += factor;
      break;
  }
  return Digits{1, ir::floor_div(doubled, 2), factor};
}

}  // namespace lathe::ops::build
