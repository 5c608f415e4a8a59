// Writing by indices: a copy of the data in which some elements are others. Of updates of one element the last counts,
// or all, in row-major order.
#include "ops/composites/indices.h"

namespace lathe::ops::composites {

namespace {

struct ScatterElementsAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "ScatterElementsAttributes";
  int64_t axis = 0;
  std::string reduction = "update";
  static constexpr auto fields() {
    return std::tuple{field("axis", &ScatterElementsAttributes::axis),
                      field("reduction", &ScatterElementsAttributes::reduction)};
  }
};

struct ScatterNdAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "ScatterNdAttributes";
  std::string reduction = "update";
  static constexpr auto fields() { return std::tuple{field("reduction", &ScatterNdAttributes::reduction)}; }
};

struct IndexPutAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "IndexPutAttributes";
  bool accumulate = false;
  static constexpr auto fields() { return std::tuple{field("accumulate", &IndexPutAttributes::accumulate)}; }
};

using build::Combine;
using Scatter = std::function<Value(const Value& x, const Value& updates, Combine combine)>;

// Sums and products of narrow floats are made in float32.
Value scatter_wide(const Expansion& e, const Value& x, const Value& updates, Combine combine, const Scatter& scatter) {
  const DType dtype = build::dtype_of(x);
  const bool is_exact = combine != Combine::add && combine != Combine::multiply;
  const DType wide = is_exact ? dtype : relax::accumulation_dtype(dtype);
  return e.cast(scatter(e.cast(x, wide), e.cast(updates, wide), combine), dtype);
}

// Of the element and its updates; of integers rounded down.
Value scatter_mean(const Expansion& e, const Value& x, const Value& updates, const Scatter& scatter) {
  const DType dtype = build::dtype_of(x);
  const DType wide = dtype.is_floating() ? relax::accumulation_dtype(dtype)
                     : dtype.is_int()    ? DType::int64()
                                         : DType::uint(64);
  const Value sums = scatter(e.cast(x, wide), e.cast(updates, wide), Combine::add);
  const auto ones = [&](const Value& like) {
    return e.call(ops::full, {ir::make<relax::ShapeExpr>(build::shape_of(like)), build::scalar(DType::int64(), 1)});
  };
  const Value counts = scatter(ones(x), ones(updates), Combine::add);
  return build::elementwise(
      e.b, {sums, counts}, build::shape_of(x),
      [&](const Indices& of, const Indices&) {
        const Expr count = ir::cast(wide, of[1]);
        return ir::cast(dtype, wide.is_floating() ? ir::div(of[0], count) : ir::floordiv(of[0], count));
      },
      "scatter_mean");
}

Value scattered(const Expansion& e, const std::string& reduction, const Value& updates, const Scatter& scatter) {
  const Value& x = e.tensor(0);
  if (build::dtype_of(updates) != build::dtype_of(x))
    e.refuse(codes::dtype_mismatch, "the updates are " + build::dtype_of(updates).str() + ", but the data is " +
                                        build::dtype_of(x).str() + "; R.astype converts");
  static const std::unordered_map<std::string_view, Combine> ways = {
      {"update", Combine::replace}, {"add", Combine::add},     {"mul", Combine::multiply},
      {"min", Combine::minimum},    {"max", Combine::maximum}, {"mean", Combine::add}};
  const auto way = ways.find(reduction);
  if (way == ways.end())
    e.refuse(codes::wrong_attribute,
             "the reduction '" + reduction + "' is none of 'update', 'add', 'mul', 'mean', 'max' and 'min'");
  if (reduction != "update") expect_dtype(e, 0, "data", DTypeSet::numeric);
  if (reduction == "mean") return scatter_mean(e, x, updates, scatter);
  return scatter_wide(e, x, updates, way->second, scatter);
}

Value expand_scatter_elements(const Expansion& e) {
  const auto& how = e.attrs<ScatterElementsAttributes>();
  const int64_t axis = e.axis(how.axis, build::shape_of(e.tensor(0)).size());
  expect_along(e, 0, 1, axis);
  const Shape where = build::shape_of(e.tensor(1)), given = build::shape_of(e.tensor(2));
  bool fits = where.size() == given.size();
  for (size_t d = 0; fits && d < where.size(); ++d) fits = !relax::different_extents(where[d], given[d]);
  if (!fits)
    e.refuse(codes::shape_mismatch,
             "the updates " + relax::text_of(given) + " have not the shape of the indices " + relax::text_of(where));
  return scattered(e, how.reduction, e.tensor(2), [&](const Value& x, const Value& updates, Combine combine) {
    return build::scatter_elements(e.b, x, e.tensor(1), updates, axis, combine);
  });
}

Value expand_scatter_nd(const Expansion& e) {
  const Shape own = build::shape_of(e.tensor(0)), where = build::shape_of(e.tensor(1));
  const size_t width = expect_coordinates(e, 1, own, 0);
  Shape expected(where.begin(), where.end() - 1);
  expected.insert(expected.end(), own.begin() + static_cast<int64_t>(width), own.end());
  const Shape given = build::shape_of(e.tensor(2));
  bool fits = expected.size() == given.size();
  for (size_t d = 0; fits && d < given.size(); ++d) fits = !relax::different_extents(expected[d], given[d]);
  if (!fits)
    e.refuse(codes::shape_mismatch, "the updates are " + relax::text_of(given) + ", but the indices " +
                                        relax::text_of(where) + " and the data " + relax::text_of(own) + " need " +
                                        relax::text_of(expected));
  return scattered(e, e.attrs<ScatterNdAttributes>().reduction, e.tensor(2),
                   [&](const Value& x, const Value& updates, Combine combine) {
                     return build::scatter_nd(e.b, x, e.tensor(1), updates, combine);
                   });
}

// The index tensors broadcast to `shape`, as coordinates along a new last dimension.
Value coordinates_of(const Expansion& e, const std::vector<Value>& indices, const Shape& shape) {
  Shape cells = shape;
  cells.push_back(ir::int64(static_cast<int64_t>(indices.size())));
  const auto make = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        cells,
        [&](const Indices& i) {
          const Indices at(i.begin(), i.end() - 1);
          const auto coordinate = [&](size_t k) {
            return ir::cast(DType::int64(), te::topi::broadcast_load(in[k], shape, at));
          };
          Expr result = coordinate(in.size() - 1);
          for (size_t k = in.size() - 1; k-- > 0;)
            result = ir::select(ir::eq(i.back(), ir::int64(static_cast<int64_t>(k))), coordinate(k), result);
          return result;
        },
        in, "coordinates")};
  };
  return e.b.call_te("coordinates", indices, make).value_or_throw();
}

Value expand_index_put(const Expansion& e) {
  const Shape own = build::shape_of(e.tensor(0));
  const std::vector<Value> indices = index_tensors(e, 1, own.size());
  const Shape common = index_shape(e, indices);
  for (size_t d = 0; d < indices.size(); ++d) expect_elements(e, own[d], common);
  Shape chosen = common;
  chosen.insert(chosen.end(), own.begin() + static_cast<int64_t>(indices.size()), own.end());
  const Shape given = build::shape_of(e.tensor(2));
  relax::Assumptions assumptions;
  if (!relax::broadcasts_to(given, chosen, &assumptions))
    e.refuse(codes::cannot_broadcast,
             "the values " + relax::text_of(given) + " cannot be broadcast to " + relax::text_of(chosen));
  for (const auto& [actual, expected] : assumptions) build::expect_equal(e.b, actual, expected);
  Value values = e.tensor(2);
  if (!relax::same_shape(given, chosen))
    values = build::elementwise(
        e.b, {values}, chosen, [](const Indices& x, const Indices&) { return x[0]; }, "broadcast_values");
  const Value cells = coordinates_of(e, indices, common);
  return scattered(e, e.attrs<IndexPutAttributes>().accumulate ? "add" : "update", values,
                   [&](const Value& x, const Value& updates, Combine combine) {
                     return build::scatter_nd(e.b, x, cells, updates, combine);
                   });
}

// input[start:end:step] along the axis replaced by src.
Value expand_slice_scatter(const Expansion& e) {
  const Value &x = e.tensor(0), &src = e.tensor(1);
  expect_one_dtype(e, {x, src});
  const Shape own = build::shape_of(x), part = build::shape_of(src);
  const int64_t axis = e.axis(e.attrs<AxisAttributes>().axis, own.size());
  if (own.size() != part.size())
    e.refuse(codes::wrong_rank,
             "the part " + relax::text_of(part) + " has not the rank of the tensor " + relax::text_of(own));
  const Expr& extent = own[static_cast<size_t>(axis)];
  const auto clamped = [&](size_t i, std::string_view name) {
    const Expr given = integer_argument(e, i, name);
    const Expr from_start = ir::select(given < 0, given + extent, given);
    return relax::simplified(ir::max(ir::min(from_start, extent), ir::int64(0)));
  };
  const Expr start = clamped(2, "start"), end = clamped(3, "end"), step = integer_argument(e, 4, "step");
  if (const auto known = ir::as_int(step); known && *known < 1)
    e.refuse(codes::wrong_arguments, "the step is " + std::to_string(*known) + ", but it must lead forward");
  else if (!known)
    build::expect(e.b, step > 0, relax::Message() << "the step is " << step << ", but it must lead forward");
  const Expr size = relax::simplified(ir::max(step, ir::int64(1)));
  Shape expected = own;
  expected[static_cast<size_t>(axis)] = relax::non_negative(ir::floordiv(end - start + (size - 1), size));
  for (size_t d = 0; d < own.size(); ++d) {
    if (relax::different_extents(part[d], expected[d]))
      e.refuse(codes::shape_mismatch,
               "the part is " + relax::text_of(part) + ", but the range has " + relax::text_of(expected));
    build::expect_equal(e.b, part[d], expected[d]);
  }
  Numbers numbers({x, src});
  const auto first = numbers.add(e, DType::int64(), start), by = numbers.add(e, DType::int64(), size);
  const auto make = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        own,
        [&](const Indices& i) {
          const Expr away = i[static_cast<size_t>(axis)] - first(in), pace = by(in);
          const Expr place = ir::floordiv(away, pace);
          const Expr is_within = ir::logical_and(away >= 0, place < part[static_cast<size_t>(axis)]);
          const Expr is_replaced = ir::logical_and(is_within, ir::eq(place * pace, away));
          Indices at = i;
          at[static_cast<size_t>(axis)] = place;
          return ir::if_then_else(is_replaced, in[1](std::move(at)), in[0](i));
        },
        in, "slice_scatter")};
  };
  return e.b.call_te("slice_scatter", numbers.operands, make).value_or_throw();
}

}  // namespace

const Operator scatter_elements = composite("scatter_elements", {{"data"}, {"indices"}, {"updates"}},
                                            relax::attributes_of<ScatterElementsAttributes>(), expand_scatter_elements,
                                            "y = data.copy(); numpy.put_along_axis(y, indices, updates, axis)");
const Operator scatter_nd =
    composite("scatter_nd", {{"data"}, {"indices"}, {"updates"}}, relax::attributes_of<ScatterNdAttributes>(),
              expand_scatter_nd, "y = data.copy(); y[tuple(numpy.moveaxis(indices, -1, 0))] = updates");
const Operator index_put =
    composite("index_put", {{"data"}, {"indices"}, {"values"}}, relax::attributes_of<IndexPutAttributes>(),
              expand_index_put, "y = data.copy(); y[indices] = values, or numpy.add.at(y, indices, values)");
const Operator slice_scatter = composite("slice_scatter",
                                         {{"input_tensor"},
                                          {"src"},
                                          {"start", Input::required, Input::scalar},
                                          {"end", Input::required, Input::scalar},
                                          {"step", Input::required, Input::scalar}},
                                         relax::attributes_of<AxisAttributes>(), expand_slice_scatter,
                                         "y = input_tensor.copy(); y[start:end:step] = src along the axis");

}  // namespace lathe::ops::composites
