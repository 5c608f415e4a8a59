// Resampling along axes, one after the other in one tensor program. Which elements an element is made of, and what they
// weigh, is computed in float64, so that halves are told apart as on paper, and read from tables: they are made here
// where extents and scales are known and no table is large, else by a kernel of their own. An index in closed form
// needs no table.
#include "ir/tensor_data.h"
#include "ops/build/resample_positions.h"

namespace lathe::ops::build {

namespace {

// Sums of so many terms are written out; others are reductions.
constexpr int64_t most_written_out = 16;

// How the elements of one axis of the result are made, as expressions of the main program.
struct AxisPlan {
  int64_t axis = 0;
  Expr own, extent;
  // The nearest element, or the first that has a weight, and whether it may lie outside of the axis.
  std::function<Expr(const std::vector<Tensor>& in, const Expr& i)> index;
  bool by_table = true;  // which holds the index
  bool may_lie_outside = true;
  Expr taps;
  std::function<Expr(const std::vector<Tensor>& in, const Expr& tap, const Expr& i)> weight;
  std::function<Expr(const std::vector<Tensor>& in, const Expr& i)> is_extrapolated;  // null where nothing is
};

std::optional<int64_t> known_taps(const AxisPlan& plan) {
  const auto taps = ir::as_int(plan.taps);
  return taps && *taps <= most_written_out ? taps : std::nullopt;
}

Value table_of(DType dtype, std::vector<int64_t> shape, const std::vector<double>& values) {
  return dtype == DType::float32()
             ? relax::constant(ir::tensor_of<float>(dtype, std::move(shape), {values.begin(), values.end()}))
             : relax::constant(ir::tensor_of<double>(position_type, std::move(shape), values));
}

std::function<Expr(const std::vector<Tensor>&, const Expr&)> index_by(const Digits& digits) {
  return [=](const std::vector<Tensor>&, const Expr& i) {
    const Expr joined = ir::mul(i, ir::int64(digits.step)) + ir::int64(digits.shift);
    return digits.period == 1 ? joined : ir::floordiv(joined, ir::int64(digits.period));
  };
}

// The plan of an axis whose scale is a whole number, of which each element is repeated: no table is needed.
std::optional<AxisPlan> repeating_plan(const ResampledAxis& axis, const Expr& own, const Resampling& how) {
  const auto digits = axis.known_scale ? nearest_digits(how, *axis.known_scale) : std::nullopt;
  if (!digits) return std::nullopt;
  AxisPlan plan;
  plan.taps = ir::int64(1);
  plan.index = index_by(*digits);
  plan.by_table = false;
  plan.may_lie_outside =
      digits->shift != 0 || !relax::same_extent(axis.extent, relax::simplified(own * digits->period));
  return plan;
}

// The plan of an axis of which all is known; tables become arguments.
AxisPlan known_plan(const ResampledAxis& axis, int64_t own, int64_t extent, DType wide, const Resampling& how,
                    std::vector<Value>& args) {
  const ResampleTable table =
      resample_table(how, own, extent, *axis.known_scale, axis.known_range.value_or(std::pair(0.0, 1.0)));
  AxisPlan plan;
  if (const auto digits = as_digits(table.index)) {
    plan.index = index_by(*digits);
    plan.by_table = false;
  } else {
    const size_t at = args.size();
    args.push_back(relax::constant(ir::tensor_of<int64_t>(DType::int64(), {extent}, table.index)));
    plan.index = [=](const std::vector<Tensor>& in, const Expr& i) { return in[at]({i}); };
  }
  const auto taps = static_cast<int64_t>(std::max<size_t>(table.weights.size(), 1));
  plan.taps = ir::int64(taps);
  plan.may_lie_outside = false;
  for (const int64_t index : table.index)
    plan.may_lie_outside = plan.may_lie_outside || index < 0 || index + taps > own;
  // A weight that is the same everywhere is a constant of the program.
  bool same = known_taps(plan).has_value();
  std::vector<double> all, first;
  for (const std::vector<double>& tap : table.weights) {
    for (const double w : tap) same = same && std::fabs(w - tap[0]) <= 1e-12;
    first.push_back(tap.empty() ? 0 : tap[0]);
    all.insert(all.end(), tap.begin(), tap.end());
  }
  if (same) {
    plan.weight = [=](const std::vector<Tensor>&, const Expr& tap, const Expr&) {
      return ir::constant(wide, first[static_cast<size_t>(*ir::as_int(tap))]);
    };
  } else {
    const size_t at = args.size();
    const DType stored = wide == DType::float32() ? wide : position_type;
    args.push_back(table_of(stored, {taps, extent}, all));
    plan.weight = [=](const std::vector<Tensor>& in, const Expr& tap, const Expr& i) {
      return ir::cast(wide, in[at]({tap, i}));
    };
  }
  if (std::find(table.outside.begin(), table.outside.end(), 1) != table.outside.end()) {
    const size_t at = args.size();
    args.push_back(relax::constant(ir::tensor_of<uint8_t>(DType::uint(8), {extent}, table.outside)));
    plan.is_extrapolated = [=](const std::vector<Tensor>& in, const Expr& i) {
      return ir::ne(in[at]({i}), ir::constant(DType::uint(8), 0));
    };
  }
  return plan;
}

// The plan of an axis that only the run knows: a kernel makes the tables.
AxisPlan computed_plan(BlockBuilder& b, const ResampledAxis& axis, const Expr& own, DType wide, const Resampling& how,
                       std::vector<Value>& args) {
  const bool weighs = how.interpolation != Interpolation::nearest;
  const bool crops = how.coordinates == Coordinates::crop_and_resize;
  const int64_t support = how.interpolation == Interpolation::linear ? 1 : 2;
  // Elements floor(position) - reach + 1 … floor(position) + reach have weights; a shrinking filter is wider.
  const Expr reach = how.antialias
                         ? relax::simplified(ir::ceildiv(own, ir::max(axis.extent, ir::int64(1))) * support + support)
                         : ir::int64(support);
  AxisPlan plan;
  plan.taps = weighs ? relax::simplified(reach * 2) : ir::int64(1);
  const auto build = [&](const std::vector<Tensor>& in) {
    const Expr last = own - 1;
    const auto positions = [&](const Expr& i) {
      return Positions<Expr>{how,
                             ir::cast(position_type, own),
                             ir::cast(position_type, axis.extent),
                             in[0]({}),
                             crops ? in[1]({ir::int64(0)}) : position<Expr>(0),
                             crops ? in[1]({ir::int64(1)}) : position<Expr>(1)}(ir::cast(position_type, i));
    };
    const auto first = [&](const Expr& i) {
      if (!weighs) return ir::cast(DType::int64(), nearest_to(how.nearest, positions(i)));
      return ir::cast(DType::int64(), rounded_down(positions(i))) - reach + 1;
    };
    std::vector tables{te::compute({axis.extent}, [&](const Indices& i) { return first(i[0]); }, in, "resample_index")};
    if (weighs) {
      Tensor weights = te::compute(
          {plan.taps, axis.extent},
          [&](const Indices& i) {
            const Expr element = first(i[1]) + i[0];
            Expr distance = ir::cast(position_type, element) - positions(i[1]);
            if (how.antialias) distance = distance * ir::min(in[0]({}), position<Expr>(1));
            const Expr weight = weight_at(how.interpolation, how.cubic_a, distance);
            return how.exclude_outside
                       ? ir::select(ir::logical_and(element >= 0, element <= last), weight, position<Expr>(0))
                       : weight;
          },
          in, "resample_weights");
      if (how.antialias || how.exclude_outside) {
        const te::IterVar tap = te::reduce_axis(ir::int64(0), plan.taps, "t");
        const Tensor totals = te::compute(
            {axis.extent}, [&](const Indices& i) { return te::sum(weights({tap->var, i[0]}), {tap}); }, {weights},
            "resample_totals");
        weights = te::compute(
            {plan.taps, axis.extent}, [&](const Indices& i) { return ir::div(weights(i), totals({i[1]})); },
            {weights, totals}, "resample_normalised");
      }
      tables.push_back(te::compute(
          {plan.taps, axis.extent}, [&](const Indices& i) { return ir::cast(wide, weights(i)); }, {weights},
          "resample_cast"));
    }
    if (crops)
      tables.push_back(te::compute(
          {axis.extent},
          [&](const Indices& i) {
            const Expr at = positions(i[0]);
            return ir::cast(DType::uint(8), ir::logical_or(at<position<Expr>(0), at> ir::cast(position_type, last)));
          },
          in, "resample_outside"));
    return tables;
  };
  std::vector<Value> inputs{axis.scale};
  if (crops) inputs.push_back(axis.range);
  const Value made = b.call_te("resample_tables", std::move(inputs), build).value_or_throw();
  const size_t at = args.size();
  if (weighs || crops)
    for (int64_t k = 0; k < 1 + weighs + crops; ++k) args.push_back(b.tuple_item(made, k));
  else
    args.push_back(made);
  plan.index = [=](const std::vector<Tensor>& in, const Expr& i) { return in[at]({i}); };
  plan.weight = [=](const std::vector<Tensor>& in, const Expr& tap, const Expr& i) { return in[at + 1]({tap, i}); };
  if (crops)
    plan.is_extrapolated = [=](const std::vector<Tensor>& in, const Expr& i) {
      return ir::ne(in[at + 1 + weighs]({i}), ir::constant(DType::uint(8), 0));
    };
  return plan;
}

Expr index_of(const AxisPlan& plan, const std::vector<Tensor>& in, const Expr& i, const Expr& tap) {
  const Expr index = plan.index(in, i) + tap;
  return plan.may_lie_outside ? ir::max(ir::min(index, plan.own - 1), ir::int64(0)) : index;
}

// `from` resampled along one axis, in the dtype that sums have.
Tensor weighed(const AxisPlan& plan, const Tensor& from, const std::vector<Tensor>& in, DType wide,
               Expr extrapolation) {
  const auto d = static_cast<size_t>(plan.axis);
  const std::string name = "resample_axis" + std::to_string(plan.axis);
  Shape shape = from.shape();
  shape[d] = plan.extent;
  std::vector<Tensor> read = in;
  read.push_back(from);
  const auto term = [&](const Indices& i, const Expr& tap) {
    Indices at = i;
    at[d] = index_of(plan, in, i[d], tap);
    return ir::cast(wide, from(std::move(at))) * plan.weight(in, tap, i[d]);
  };
  const auto extrapolated = [&](const Indices& i, const Expr& value) {
    return plan.is_extrapolated ? ir::select(plan.is_extrapolated(in, i[d]), extrapolation, value) : value;
  };
  if (const auto taps = known_taps(plan))
    return te::compute(
        shape,
        [&](const Indices& i) {
          Expr sum = term(i, ir::int64(0));
          for (int64_t k = 1; k < *taps; ++k) sum = sum + term(i, ir::int64(k));
          return extrapolated(i, sum);
        },
        read, name);
  const te::IterVar tap = te::reduce_axis(ir::int64(0), plan.taps, "k");
  const Tensor sums =
      te::compute(shape, [&](const Indices& i) { return te::sum(term(i, tap->var), {tap}); }, read, name + "_sums");
  if (!plan.is_extrapolated) return sums;
  read.push_back(sums);
  return te::compute(shape, [&](const Indices& i) { return extrapolated(i, sums(i)); }, read, name);
}

// In which order the axes are resampled: along the innermost of the tensor, where lanes read at places that come from a
// table, while there are fewest rows: before axes that grow, behind all others.
std::vector<AxisPlan> in_order(const std::vector<AxisPlan>& plans, size_t rank) {
  if (!plans.back().by_table || static_cast<size_t>(plans.back().axis) + 1 != rank) return plans;
  std::vector<AxisPlan> first, growing;
  for (size_t i = 0; i + 1 < plans.size(); ++i) {
    const auto from = ir::as_int(plans[i].own), to = ir::as_int(plans[i].extent);
    (from && to && *to > *from ? growing : first).push_back(plans[i]);
  }
  first.push_back(plans.back());
  first.insert(first.end(), growing.begin(), growing.end());
  return first;
}

}  // namespace

Expr interpolation_weight(Interpolation interpolation, double cubic_a, const Expr& distance) {
  return weight_at(interpolation, cubic_a, distance);
}

Value resample(BlockBuilder& b, const Value& x, const std::vector<ResampledAxis>& axes, const Resampling& how) {
  if (axes.empty()) return x;
  const Shape own = shape_of(x);
  const DType dtype = dtype_of(x), wide = dtype.is_floating() ? relax::accumulation_dtype(dtype) : position_type;
  std::vector<Value> args{x};
  std::vector<AxisPlan> plans;
  for (const ResampledAxis& axis : axes) {
    const Expr& elements = own[static_cast<size_t>(axis.axis)];
    expect(b, ir::logical_or(elements > 0, ir::eq(axis.extent, ir::int64(0))),
           relax::Message() << "dimension " + std::to_string(axis.axis) +
                                   " has no elements to resample, but the result has "
                            << axis.extent << b.operands());
    const auto from = ir::as_int(elements), to = ir::as_int(axis.extent);
    const bool known = from && to && axis.known_scale && (!axis.range || axis.known_range) &&
                       is_small_table(how, *to, *axis.known_scale);
    const auto repeating = known ? std::nullopt : repeating_plan(axis, elements, how);
    plans.push_back(known       ? known_plan(axis, *from, *to, wide, how, args)
                    : repeating ? *repeating
                                : computed_plan(b, axis, elements, wide, how, args));
    plans.back().axis = axis.axis;
    plans.back().own = elements;
    plans.back().extent = axis.extent;
  }
  Shape shape = own;
  for (const AxisPlan& plan : plans) shape[static_cast<size_t>(plan.axis)] = plan.extent;

  const auto nearest = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const Indices& i) {
          Indices at = i;
          for (const AxisPlan& plan : plans) {
            const auto d = static_cast<size_t>(plan.axis);
            at[d] = index_of(plan, in, i[d], ir::int64(0));
          }
          Expr value = in[0](std::move(at));
          for (const AxisPlan& plan : plans)
            if (plan.is_extrapolated)
              value = ir::select(plan.is_extrapolated(in, i[static_cast<size_t>(plan.axis)]),
                                 ir::constant(dtype, how.extrapolation), value);
          return value;
        },
        in, "resample")};
  };
  const auto between = [&](const std::vector<Tensor>& in) {
    Tensor value = in[0];
    for (const AxisPlan& plan : in_order(plans, own.size()))
      value = weighed(plan, value, in, wide, ir::constant(wide, how.extrapolation));
    if (wide == dtype) return std::vector{value};
    return std::vector{
        te::compute(shape, [&](const Indices& i) { return ir::cast(dtype, value(i)); }, {value}, "resample")};
  };
  if (how.interpolation == Interpolation::nearest)
    return b.call_te("resample", std::move(args), nearest).value_or_throw();
  return b.call_te("resample", std::move(args), between).value_or_throw();
}

}  // namespace lathe::ops::build
