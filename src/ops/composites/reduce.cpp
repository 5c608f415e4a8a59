// Reductions made of reductions, and sums along an axis: std, variance, median, cumsum, cumprod, collapse_sum.
#include "ops/composites/operands.h"

namespace lathe::ops::composites {

namespace {

struct CumulateAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "CumulateAttributes";
  std::optional<int64_t> axis;  // nothing: of the flattened tensor
  std::optional<DType> dtype;   // nothing: the data's
  bool exclusive = false;
  static constexpr auto fields() {
    return std::tuple{field("axis", &CumulateAttributes::axis), field("dtype", &CumulateAttributes::dtype),
                      field("exclusive", &CumulateAttributes::exclusive)};
  }
};

// The mean square distance from the mean, in the type of accumulation.
Value wide_variance(const Expansion& e) {
  expect_dtype(e, 0, "x", DTypeSet::floating);
  const auto& how = e.attrs<ReduceAttributes>();
  const Axes axes = e.axes(how.axis, build::shape_of(e.tensor(0)).size());
  const Value x = e.cast(e.tensor(0), relax::accumulation_dtype(build::dtype_of(e.tensor(0))));
  const Value variance = build::variance(e.b, x, build::mean(e.b, x, axes), axes);
  return e.reshape(variance, relax::reduced_shape(build::shape_of(x), axes, how.keepdims));
}

Value expand_variance(const Expansion& e) { return e.cast(wide_variance(e), build::dtype_of(e.tensor(0))); }
Value expand_std(const Expansion& e) {
  return e.cast(e.call(ops::sqrt, {wide_variance(e)}), build::dtype_of(e.tensor(0)));
}

// The elements of x at `place` of the axis, which stays with extent 1.
Value elements_at(const Expansion& e, const Value& x, int64_t axis, const Expr& place) {
  const auto build = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        relax::reduced_shape(build::shape_of(x), {axis}, true),
        [&](Indices i) {
          i[static_cast<size_t>(axis)] = place;
          return in[0](std::move(i));
        },
        in, "elements_at")};
  };
  return e.b.call_te("elements_at", {x}, build).value_or_throw();
}

// The lower of the middle two where the count is even. One NaN makes the median NaN, and is where it is.
Value expand_median(const Expansion& e) {
  expect_dtype(e, 0, "x", DTypeSet::numeric);
  const auto& how = e.attrs<ReduceAttributes>();
  const Shape given = build::shape_of(e.tensor(0));
  if (how.axis && how.axis->size() != 1)
    e.refuse(codes::wrong_attribute,
             "there are " + std::to_string(how.axis->size()) + " axes; one axis, or None for all elements, fits");
  const int64_t axis = how.axis ? e.axis((*how.axis)[0], given.size()) : 0;
  const Value x = how.axis ? e.tensor(0) : e.reshape(e.tensor(0), {relax::simplified(ir::product(given))});
  const Shape shape = build::shape_of(x);
  const Expr& count = shape[static_cast<size_t>(axis)];
  const Expr medians = relax::simplified(ir::product(relax::reduced_shape(shape, {axis}, true)));
  if (ir::is_int(count, 0) && !ir::is_int(medians, 0))
    e.refuse(codes::shape_mismatch, "of " + relax::text_of(given) + " there is no element to choose");
  if (!ir::as_int(count))
    build::expect(e.b, ir::logical_or(count > 0, ir::eq(medians, ir::int64(0))),
                  relax::Message() << "the median of " << count << " elements is not defined");
  const Expr middle = relax::simplified(ir::floordiv(count + 1, ir::int64(2)) - 1);
  Value place = elements_at(e, build::sorted_places(e.b, x, axis, false), axis, middle);
  Value value = build::gather_elements(e.b, x, place, axis);
  if (build::dtype_of(x).is_floating()) {
    const Value largest = e.call(ops::max, {x}, ir::make<ReduceAttributes>(std::optional(Axes{axis}), true));
    const Value at = e.call(ops::argmax, {x}, ir::make<ArgReduceAttributes>(std::optional(axis), true, false));
    const Value is_nan = e.call(ops::isnan, {largest});
    value = e.call(ops::where, {is_nan, largest, value});
    place = e.call(ops::where, {is_nan, at, place});
  }
  const Axes axes = e.axes(how.axis, given.size());
  const Shape result = relax::reduced_shape(given, axes, how.keepdims);
  if (!how.axis) return e.reshape(value, result);
  return e.tuple({e.reshape(value, result), e.reshape(place, result)});
}

// The tensor is seen as [before, axis, after].
Value cumulated(const Expansion& e, bool product) {
  const auto& how = e.attrs<CumulateAttributes>();
  const Value& data = e.tensor(0);
  const DType dtype = element_dtype(e, how.dtype, build::dtype_of(data));
  if (dtype.is_bool())
    e.refuse(codes::dtype_not_supported, "bool is not added or multiplied up; dtype=\"int64\" counts");
  const Shape own = build::shape_of(data);
  Shape shape = own;
  Shape folded{ir::int64(1), relax::simplified(ir::product(own)), ir::int64(1)};
  if (how.axis) {
    const auto axis = e.axis(*how.axis, own.size());
    folded = {relax::simplified(ir::product({own.begin(), own.begin() + axis})), own[static_cast<size_t>(axis)],
              relax::simplified(ir::product({own.begin() + axis + 1, own.end()}))};
  } else {
    shape = {folded[1]};
  }
  const Value x = e.cast(e.cast(e.reshape(data, folded), dtype), relax::accumulation_dtype(dtype));
  const Value result = build::cumulate(e.b, x, {.product = product, .exclusive = how.exclusive});
  return e.reshape(e.cast(result, dtype), shape);
}

Value expand_cumsum(const Expansion& e) { return cumulated(e, false); }
Value expand_cumprod(const Expansion& e) { return cumulated(e, true); }

// What becomes of a dimension of the data: it stays, is summed, or only the run tells.
enum class Collapse : uint8_t { keep, sum, by_run };

Collapse collapse_of(const Expansion& e, const Expr& own, const Expr& target) {
  if (relax::same_extent(own, target)) return Collapse::keep;
  if (ir::is_int(target, 1)) return Collapse::sum;
  if (ir::as_int(target) || ir::is_int(own, 1)) {
    build::expect_equal(e.b, own, target);
    return Collapse::keep;
  }
  build::expect(e.b, ir::logical_or(ir::eq(target, ir::int64(1)), ir::eq(target, own)),
                relax::Message() << "a dimension of " << own << " elements cannot be collapsed to " << target);
  return Collapse::by_run;
}

// The sum over those dimensions along which a tensor of shape `target` is broadcast to the data.
Value collapsed(const Expansion& e, const Shape& target) {
  expect_dtype(e, 0, "data", DTypeSet::numeric);
  const Value& x = e.tensor(0);
  const Shape own = build::shape_of(x);
  const auto is_one_of = [](const Expr& extent, const Expr& of) {
    return ir::is_int(extent, 1) || !relax::different_extents(extent, of);
  };
  const size_t leading = own.size() - std::min(own.size(), target.size());
  bool fits = target.size() <= own.size();
  for (size_t d = leading; fits && d < own.size(); ++d) fits = is_one_of(target[d - leading], own[d]);
  if (!fits)
    e.refuse(codes::shape_mismatch, relax::text_of(own) + " cannot be collapsed to " + relax::text_of(target) +
                                        ", which does not broadcast to it");
  std::vector<Collapse> ways(leading, Collapse::sum);
  for (size_t d = leading; d < own.size(); ++d) ways.push_back(collapse_of(e, own[d], target[d - leading]));
  Axes summed;
  for (size_t d = 0; d < ways.size(); ++d)
    if (ways[d] == Collapse::sum) summed.push_back(static_cast<int64_t>(d));
  if (std::find(ways.begin(), ways.end(), Collapse::by_run) == ways.end()) {
    if (summed.empty()) return e.reshape(x, target);
    return e.reshape(e.call(ops::sum, {x}, ir::make<ReduceAttributes>(std::optional(summed), true)), target);
  }
  const DType dtype = build::dtype_of(x), wide = relax::accumulation_dtype(dtype);
  const auto build = [&](const std::vector<Tensor>& in) {
    std::vector<te::IterVar> axes;
    for (size_t d = 0; d < own.size(); ++d) {
      if (ways[d] == Collapse::keep) continue;
      Expr steps = own[d];
      if (ways[d] == Collapse::by_run)
        steps = ir::select(ir::eq(target[d - leading], ir::int64(1)), own[d], ir::int64(1));
      axes.push_back(te::reduce_axis(ir::int64(0), steps, "k" + std::to_string(d)));
    }
    const Tensor sums = te::compute(
        target,
        [&](const Indices& i) {
          Indices at;
          size_t next = 0;
          for (size_t d = 0; d < own.size(); ++d) {
            if (ways[d] == Collapse::keep) {
              at.push_back(i[d - leading]);
              continue;
            }
            const Expr k = axes[next++]->var;
            const bool is_known = ways[d] == Collapse::sum;
            at.push_back(is_known ? k : ir::select(ir::eq(target[d - leading], ir::int64(1)), k, i[d - leading]));
          }
          return te::sum(ir::cast(wide, in[0](std::move(at))), axes);
        },
        in, "collapse_sum");
    return std::vector{te::topi::cast(sums, dtype, "collapse_sum_result")};
  };
  return e.b.call_te("collapse_sum", {x}, build).value_or_throw();
}

Value expand_collapse_sum_like(const Expansion& e) { return collapsed(e, build::shape_of(e.tensor(1))); }
Value expand_collapse_sum_to(const Expansion& e) { return collapsed(e, e.shape(1)); }

}  // namespace

// Of the whole population: divided by the count.
const Operator standard_deviation = composite("std", {{"x"}}, relax::attributes_of<ReduceAttributes>(), expand_std,
                                              "numpy.std(x, axis, keepdims=keepdims)");
const Operator variance = composite("variance", {{"x"}}, relax::attributes_of<ReduceAttributes>(), expand_variance,
                                    "numpy.var(x, axis, keepdims=keepdims)");
// Along an axis: the values and their int64 places.
const Operator median = composite("median", {{"x"}}, relax::attributes_of<ReduceAttributes>(), expand_median,
                                  "numpy.quantile(x, 0.5, axis, method='lower', keepdims=keepdims)");
const Operator cumsum = composite("cumsum", {{"data"}}, relax::attributes_of<CumulateAttributes>(), expand_cumsum,
                                  "numpy.cumsum(data, axis, dtype)");
const Operator cumprod = composite("cumprod", {{"data"}}, relax::attributes_of<CumulateAttributes>(), expand_cumprod,
                                   "numpy.cumprod(data, axis, dtype)");
const Operator collapse_sum_like =
    composite("collapse_sum_like", {{"data"}, {"collapse_target"}}, nullptr, expand_collapse_sum_like,
              "numpy.sum(data, the axes along which collapse_target is broadcast).reshape(collapse_target.shape)");
const Operator collapse_sum_to =
    composite("collapse_sum_to", {{"data"}, {"shape", Input::required, Input::shape}}, nullptr, expand_collapse_sum_to,
              "numpy.sum(data, the axes along which shape is broadcast).reshape(shape)");

}  // namespace lathe::ops::composites
