// Where the elements of a resampled axis lie in the input and what the input's elements weigh there, over numbers that
// are known (double) and over expressions of what the run will see.
#pragma once

#include <cmath>

#include "ops/build.h"

namespace lathe::ops::build {

inline const DType position_type = DType::float_(64);

template <class Number>
Number position(double value) {
  if constexpr (std::is_same_v<Number, double>)
    return value;
  else
    return ir::constant(position_type, value);
}

inline double quotient(double a, double b) { return a / b; }
inline double rounded_down(double x) { return std::floor(x); }
inline double rounded_up(double x) { return std::ceil(x); }
inline double distance_of(double x) { return std::fabs(x); }
inline double smaller(double a, double b) { return std::min(a, b); }
inline double larger(double a, double b) { return std::max(a, b); }
inline double choose(bool condition, double yes, double no) { return condition ? yes : no; }

inline Expr quotient(const Expr& a, const Expr& b) { return ir::div(a, b); }
inline Expr rounded_down(const Expr& x) { return ir::call(ir::intrinsic::floor, x); }
inline Expr rounded_up(const Expr& x) { return ir::call(ir::intrinsic::ceil, x); }
inline Expr distance_of(const Expr& x) { return ir::call(ir::intrinsic::abs, x); }
inline Expr smaller(const Expr& a, const Expr& b) { return ir::min(a, b); }
inline Expr larger(const Expr& a, const Expr& b) { return ir::max(a, b); }
inline Expr choose(const Expr& condition, const Expr& yes, const Expr& no) { return ir::select(condition, yes, no); }

// Where element `at` of the result lies in the input.
template <class Number>
struct Positions {
  const Resampling& how;
  Number own, out, scale;  // extents
  Number low, high;        // of crop_and_resize

  Number operator()(const Number& at) const {
    const Number half = position<Number>(0.5), one = position<Number>(1), zero = position<Number>(0);
    const Number width = scale * own;
    // 1 / 49 of 49 elements is less than one by a rounding.
    const auto is_one = distance_of(width - one) < position<Number>(1e-9);
    const Number centred = quotient(at + half, scale) - half;
    switch (how.coordinates) {
      case Coordinates::half_pixel:
        return centred;
      case Coordinates::half_pixel_symmetric:
        return own * half * (one - quotient(out, width)) + centred;
      case Coordinates::pytorch_half_pixel:
        return choose(is_one, zero, centred);
      case Coordinates::align_corners:
        return choose(is_one, zero, quotient(at * (own - one), width - one));
      case Coordinates::asymmetric:
        return quotient(at, scale);
      case Coordinates::half_pixel_begin:
        return quotient(at + half, scale);
      case Coordinates::crop_and_resize:
        return low * (own - one) + choose(is_one, (high - low) * (own - one) * half,
                                          quotient(at * (high - low) * (own - one), width - one));
    }
    support::unreachable("coordinates without a case");
  }
};

template <class Number>
Number nearest_to(Nearest mode, const Number& at) {
  switch (mode) {
    case Nearest::round_prefer_floor:
      return rounded_up(at - position<Number>(0.5));
    case Nearest::round_prefer_ceil:
      return rounded_down(at + position<Number>(0.5));
    case Nearest::floor:
      return rounded_down(at);
    case Nearest::ceil:
      return rounded_up(at);
  }
  support::unreachable("a rounding without a case");
}

// The weight of an element at a distance: a triangle, or Keys' cubic.
template <class Number>
Number weight_at(Interpolation interpolation, double cubic_a, const Number& distance) {
  const Number d = distance_of(distance), zero = position<Number>(0), one = position<Number>(1);
  if (interpolation == Interpolation::linear) return larger(one - d, zero);
  const Number a = position<Number>(cubic_a), two = position<Number>(2);
  const Number near = ((a + two) * d - (a + position<Number>(3))) * d * d + one;
  const Number far = ((a * d - a * position<Number>(5)) * d + a * position<Number>(8)) * d - a * position<Number>(4);
  return choose(d <= one, near, choose(d < two, far, zero));
}

// Numbers of an axis whose extents and scale are known.
struct ResampleTable {
  std::vector<int64_t> index;                // the nearest element, or the first that has a weight; may lie outside
  std::vector<std::vector<double>> weights;  // of index, index + 1, …: for each element of the result; none for nearest
  std::vector<uint8_t> outside;              // of crop_and_resize: whether the extrapolated value stands there
};
// Whether the numbers are few enough to be made while a model is compiled, which may ask for any extent and scale.
bool is_small_table(const Resampling& how, int64_t extent, double scale);
ResampleTable resample_table(const Resampling& how, int64_t own, int64_t extent, double scale,
                             const std::pair<double, double>& range);

// (step * i + shift) // period, a table in closed form: with a period of at most `largest_period`, which vectors can be
// cut by.
struct Digits {
  int64_t step = 0, shift = 0, period = 1;
};
inline constexpr int64_t largest_period = 8;
std::optional<Digits> as_digits(const std::vector<int64_t>& index);
// The nearest element where the scale is a whole number, whatever the extents are.
std::optional<Digits> nearest_digits(const Resampling& how, double scale);

}  // namespace lathe::ops::build
