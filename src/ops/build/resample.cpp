// Resampling along one axis. Positions are computed in float64, so that halves are told apart as on paper.
#include "ops/build.h"

namespace lathe::ops::build {

namespace {

const DType position_type = DType::float_(64);

Expr position(double value) { return ir::constant(position_type, value); }
Expr rounded_down(const Expr& x) { return ir::call(ir::intrinsic::floor, x); }
Expr rounded_up(const Expr& x) { return ir::call(ir::intrinsic::ceil, x); }

// Where element `at` of the result lies in the input.
struct Positions {
  const Resampling& how;
  Expr own, out, scale;  // extents, as float64
  Expr low, high;        // of crop_and_resize

  Expr operator()(const Expr& index) const {
    const Expr at = ir::cast(position_type, index), half = position(0.5), one = position(1);
    const Expr width = scale * own;
    // 1 / 49 of 49 elements is less than one by a rounding.
    const Expr is_one = ir::call(ir::intrinsic::abs, width - one) < position(1e-9);
    const Expr centred = ir::div(at + half, scale) - half;
    switch (how.coordinates) {
      case Coordinates::half_pixel:
        return centred;
      case Coordinates::half_pixel_symmetric:
        return own * half * (one - ir::div(out, width)) + centred;
      case Coordinates::pytorch_half_pixel:
        return ir::select(is_one, position(0), centred);
      case Coordinates::align_corners:
        return ir::select(is_one, position(0), ir::div(at * (own - one), width - one));
      case Coordinates::asymmetric:
        return ir::div(at, scale);
      case Coordinates::half_pixel_begin:
        return ir::div(at + half, scale);
      case Coordinates::crop_and_resize:
        return low * (own - one) + ir::select(is_one, (high - low) * (own - one) * half,
                                              ir::div(at * (high - low) * (own - one), width - one));
    }
    support::unreachable("coordinates without a case");
  }
};

Expr nearest_index(Nearest mode, const Expr& at) {
  switch (mode) {
    case Nearest::round_prefer_floor:
      return rounded_up(at - position(0.5));
    case Nearest::round_prefer_ceil:
      return rounded_down(at + position(0.5));
    case Nearest::floor:
      return rounded_down(at);
    case Nearest::ceil:
      return rounded_up(at);
  }
  support::unreachable("a rounding without a case");
}

}  // namespace

Expr interpolation_weight(Interpolation interpolation, double cubic_a, const Expr& distance) {
  const Expr d = ir::call(ir::intrinsic::abs, distance), zero = position(0), one = position(1);
  if (interpolation == Interpolation::linear) return ir::max(one - d, zero);
  const Expr a = position(cubic_a);
  const Expr near = ((a + position(2)) * d - (a + position(3))) * d * d + one;
  const Expr far = ((a * d - a * position(5)) * d + a * position(8)) * d - a * position(4);
  return ir::select(d <= one, near, ir::select(d < position(2), far, zero));
}

Value resample(BlockBuilder& b, const Value& x, int64_t axis, const Expr& extent, const Value& scale,
               const Value& range, const Resampling& how) {
  const auto d = static_cast<size_t>(axis);
  const Shape own = shape_of(x);
  expect(b, ir::logical_or(own[d] > 0, ir::eq(extent, ir::int64(0))),
         relax::Message() << "dimension " + std::to_string(axis) + " has no elements to resample, but the result has "
                          << extent << b.operands());
  Shape shape = own;
  shape[d] = extent;
  const DType dtype = dtype_of(x), wide = dtype.is_floating() ? relax::accumulation_dtype(dtype) : position_type;
  std::vector<Value> args{x, scale};
  if (range) args.push_back(range);

  const auto build = [&](const std::vector<Tensor>& in) {
    const Expr last = own[d] - 1;
    const auto positions = [&](const Expr& index) {
      const bool crops = in.size() > 2;
      return Positions{how,
                       ir::cast(position_type, own[d]),
                       ir::cast(position_type, extent),
                       in[1]({}),
                       crops ? in[2]({ir::int64(0)}) : position(0),
                       crops ? in[2]({ir::int64(1)}) : position(1)}(index);
    };
    const auto inside = [&](const Expr& index) { return ir::max(ir::min(index, last), ir::int64(0)); };
    const auto extrapolated = [&](const Expr& index, const Expr& value) {
      if (how.coordinates != Coordinates::crop_and_resize) return value;
      const Expr at = positions(index);
      const Expr outside = ir::logical_or(at<position(0), at> ir::cast(position_type, last));
      return ir::select(outside, ir::constant(dtype, how.extrapolation), value);
    };
    if (how.interpolation == Interpolation::nearest)
      return std::vector{te::compute(
          shape,
          [&](const Indices& i) {
            Indices at = i;
            at[d] = inside(ir::cast(DType::int64(), nearest_index(how.nearest, positions(i[d]))));
            return extrapolated(i[d], in[0](std::move(at)));
          },
          in, "resample")};

    // Elements floor(position) - reach + 1 … floor(position) + reach have weights; a shrinking filter is wider.
    const int64_t support = how.interpolation == Interpolation::linear ? 1 : 2;
    const Expr reach = how.antialias
                           ? relax::simplified(ir::ceildiv(own[d], ir::max(extent, ir::int64(1))) * support + support)
                           : ir::int64(support);
    const auto element = [&](const Expr& index, const Expr& tap) {
      return ir::cast(DType::int64(), rounded_down(positions(index))) - reach + 1 + tap;
    };
    const Tensor weights = te::compute(
        {extent, reach * 2},
        [&](const Indices& i) {
          const Expr k = element(i[0], i[1]);
          Expr distance = ir::cast(position_type, k) - positions(i[0]);
          if (how.antialias) distance = distance * ir::min(in[1]({}), position(1));
          Expr weight = interpolation_weight(how.interpolation, how.cubic_a, distance);
          if (how.exclude_outside) weight = ir::select(ir::logical_and(k >= 0, k <= last), weight, position(0));
          return weight;
        },
        in, "resample_weights");
    const te::IterVar total_tap = te::reduce_axis(ir::int64(0), reach * 2, "t");
    const Tensor totals = te::compute(
        {extent}, [&](const Indices& i) { return te::sum(weights({i[0], total_tap->var}), {total_tap}); }, {weights},
        "resample_totals");
    const te::IterVar tap = te::reduce_axis(ir::int64(0), reach * 2, "k");
    std::vector<Tensor> read = in;
    read.push_back(weights);
    const Tensor sums = te::compute(
        shape,
        [&](const Indices& i) {
          Indices at = i;
          at[d] = inside(element(i[d], tap->var));
          return te::sum(ir::cast(wide, in[0](std::move(at))) * ir::cast(wide, weights({i[d], tap->var})), {tap});
        },
        read, "resample_sums");
    const bool normalised = how.antialias || how.exclude_outside;
    read = in;
    read.push_back(sums);
    read.push_back(totals);
    return std::vector{te::compute(
        shape,
        [&](const Indices& i) {
          Expr value = sums(i);
          if (normalised) value = ir::div(value, ir::cast(wide, totals({i[d]})));
          return extrapolated(i[d], ir::cast(dtype, value));
        },
        read, "resample")};
  };
  return b.call_te("resample", std::move(args), build).value_or_throw();
}

}  // namespace lathe::ops::build
