// Reading by indices, and parts of tensors.
#include "ops/composites/indices.h"

namespace lathe::ops::composites {

namespace {

struct GatherNdAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "GatherNdAttributes";
  int64_t batch_dims = 0;
  static constexpr auto fields() { return std::tuple{field("batch_dims", &GatherNdAttributes::batch_dims)}; }
};

struct TakeByModeAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "TakeByModeAttributes";
  int64_t axis = 0;
  std::string mode = "clip";
  static constexpr auto fields() {
    return std::tuple{field("axis", &TakeByModeAttributes::axis), field("mode", &TakeByModeAttributes::mode)};
  }
};

struct SplitAtAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "SplitAtAttributes";
  std::vector<int64_t> positions;
  int64_t axis = 0;
  static constexpr auto fields() {
    return std::tuple{field("positions", &SplitAtAttributes::positions), field("axis", &SplitAtAttributes::axis)};
  }
};

Value expand_gather_elements(const Expansion& e) {
  const int64_t axis = e.axis(e.attrs<AxisAttributes>().axis, build::shape_of(e.tensor(0)).size());
  expect_along(e, 0, 1, axis);
  return build::gather_elements(e.b, e.tensor(0), e.tensor(1), axis);
}

Value expand_gather_nd(const Expansion& e) {
  const Shape own = build::shape_of(e.tensor(0)), where = build::shape_of(e.tensor(1));
  const int64_t batch_dims = e.attrs<GatherNdAttributes>().batch_dims;
  const auto batch = static_cast<size_t>(batch_dims);
  if (batch_dims < 0 || batch >= own.size() || batch >= where.size())
    e.refuse(codes::wrong_attribute, "batch_dims is " + std::to_string(batch_dims) + " for data " +
                                         relax::text_of(own) + " and indices " + relax::text_of(where) +
                                         ", both of which have more dimensions than that");
  expect_coordinates(e, 1, own, batch);
  return build::gather_nd(e.b, e.tensor(0), e.tensor(1), batch_dims);
}

// data[i, j, …] with the indices broadcast together.
Value expand_index_tensor(const Expansion& e) {
  const Shape own = build::shape_of(e.tensor(0));
  const std::vector<Value> indices = index_tensors(e, 1, own.size());
  const Shape common = index_shape(e, indices);
  for (size_t d = 0; d < indices.size(); ++d) expect_elements(e, own[d], common);
  std::vector<Value> operands{e.tensor(0)};
  operands.insert(operands.end(), indices.begin(), indices.end());
  const auto outer = static_cast<int64_t>(common.size());
  Shape shape = common;
  shape.insert(shape.end(), own.begin() + static_cast<int64_t>(indices.size()), own.end());
  const auto make = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const Indices& i) {
          const Indices place(i.begin(), i.begin() + outer);
          Indices at;
          for (size_t d = 0; d < indices.size(); ++d)
            at.push_back(build::index_into(te::topi::broadcast_load(in[d + 1], common, place), own[d]));
          at.insert(at.end(), i.begin() + outer, i.end());
          return in[0](std::move(at));
        },
        in, "index_tensor")};
  };
  return e.b.call_te("index_tensor", std::move(operands), make).value_or_throw();
}

// Indices outside: "clip" takes the nearest inside, also for negative ones; "wrap" counts round and round; "nan" gives
// NaN, and lets negative ones count from the end.
Value expand_take_by_mode(const Expansion& e) {
  const auto& how = e.attrs<TakeByModeAttributes>();
  const Shape own = build::shape_of(e.tensor(0)), where = build::shape_of(e.tensor(1));
  expect_dtype(e, 1, "indices", DTypeSet::integer);
  const int64_t axis = e.axis(how.axis, own.size());
  const DType dtype = build::dtype_of(e.tensor(0));
  const bool wraps = how.mode == "wrap", gives_nan = how.mode == "nan";
  if (!wraps && !gives_nan && how.mode != "clip")
    e.refuse(codes::wrong_attribute, "the mode '" + how.mode + "' is none of 'fast', 'clip', 'wrap' and 'nan'");
  if (gives_nan && !dtype.is_floating())
    e.refuse(codes::dtype_not_supported, "the mode 'nan' is one of floats, not of " + dtype.str());
  const Expr& extent = own[static_cast<size_t>(axis)];
  if (!gives_nan) expect_elements(e, extent, where);
  Shape shape(own.begin(), own.begin() + axis);
  shape.insert(shape.end(), where.begin(), where.end());
  shape.insert(shape.end(), own.begin() + axis + 1, own.end());
  const Expr zero = ir::int64(0);
  const auto make = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const Indices& i) {
          const auto middle = i.begin() + axis, rest = middle + static_cast<int64_t>(where.size());
          const Expr given = ir::cast(DType::int64(), in[1](Indices(middle, rest)));
          const Expr from_start = ir::select(given < 0, given + extent, given);
          Expr place = ir::max(ir::min(gives_nan ? from_start : given, extent - 1), zero);
          if (wraps) place = ir::floormod(given, ir::max(extent, ir::int64(1)));
          Indices at(i.begin(), middle);
          at.push_back(place);
          at.insert(at.end(), rest, i.end());
          if (!gives_nan) return in[0](std::move(at));
          const Expr is_inside = ir::logical_and(from_start >= zero, from_start < extent);
          const Expr nan = ir::constant(dtype, std::numeric_limits<double>::quiet_NaN());
          return ir::if_then_else(is_inside, in[0](std::move(at)), nan);
        },
        in, "take_by_mode")};
  };
  return e.b.call_te("take_by_mode", {e.tensor(0), e.tensor(1)}, make).value_or_throw();
}

// Between the positions, and before and behind them, as Python's slices.
Value expand_split_at(const Expansion& e) {
  const auto& how = e.attrs<SplitAtAttributes>();
  const Value& x = e.tensor(0);
  const int64_t axis = e.axis(how.axis, build::shape_of(x).size());
  std::vector<Value> parts;
  for (size_t k = 0; k <= how.positions.size(); ++k) {
    const int64_t begin = k == 0 ? 0 : how.positions[k - 1];
    const int64_t end = k == how.positions.size() ? std::numeric_limits<int64_t>::max() : how.positions[k];
    const auto shape = [](int64_t position) { return ir::make<relax::ShapeExpr>(Shape{ir::int64(position)}); };
    parts.push_back(e.call(ops::strided_slice, {x, shape(begin), shape(end)},
                           ir::make<StridedSliceAttributes>(Axes{axis}, Axes{1})));
  }
  return e.tuple(std::move(parts));
}

}  // namespace

void expect_elements(const Expansion& e, const Expr& extent, const Shape& indices) {
  const Expr count = relax::simplified(ir::product(indices));
  const auto known = ir::as_int(extent);
  if ((known && *known > 0) || ir::is_int(count, 0)) return;
  if (known && ir::as_int(count))
    e.refuse(codes::shape_mismatch,
             "indices " + relax::text_of(indices) + " point into a dimension that has no elements");
  build::expect(e.b, ir::logical_or(extent > 0, ir::eq(count, ir::int64(0))),
                relax::Message() << count << " indices point into a dimension of " << extent << " elements");
}

void expect_along(const Expansion& e, size_t data, size_t indices, int64_t axis) {
  expect_dtype(e, indices, "indices", DTypeSet::integer);
  const Shape own = build::shape_of(e.tensor(data)), where = build::shape_of(e.tensor(indices));
  if (own.size() != where.size())
    e.refuse(codes::wrong_rank,
             "the indices " + relax::text_of(where) + " have not the rank of the data " + relax::text_of(own));
  for (size_t d = 0; d < own.size(); ++d) {
    if (d == static_cast<size_t>(axis) || relax::same_extent(own[d], where[d])) continue;
    const auto extent = ir::as_int(own[d]), count = ir::as_int(where[d]);
    if (extent && count && *count > *extent)
      e.refuse(codes::shape_mismatch, "the indices " + relax::text_of(where) + " are larger than the data " +
                                          relax::text_of(own) + " in dimension " + std::to_string(d));
    if (!extent || !count)
      build::expect(e.b, where[d] <= own[d],
                    relax::Message() << "the indices have " << where[d] << " elements in dimension "
                                     << std::to_string(d) << ", but the data has " << own[d]);
  }
  expect_elements(e, own[static_cast<size_t>(axis)], where);
}

size_t expect_coordinates(const Expansion& e, size_t indices, const Shape& own, size_t first) {
  expect_dtype(e, indices, "indices", DTypeSet::integer);
  const Shape where = build::shape_of(e.tensor(indices));
  if (where.empty())
    e.refuse(codes::wrong_rank, "the indices are a scalar, but their last dimension is of coordinates");
  const auto width = ir::as_int(where.back());
  if (!width)
    e.refuse(codes::shape_mismatch, "the last dimension of the indices " + relax::text_of(where) +
                                        " is of coordinates; their number must be known");
  if (*width < 1 || first + static_cast<size_t>(*width) > own.size())
    e.refuse(codes::shape_mismatch, "the indices " + relax::text_of(where) + " hold " + std::to_string(*width) +
                                        " coordinates each, but 1 to " + std::to_string(own.size() - first) +
                                        " fit the data " + relax::text_of(own));
  const Shape outer(where.begin(), where.end() - 1);
  for (size_t d = first; d < first + static_cast<size_t>(*width); ++d) expect_elements(e, own[d], outer);
  return static_cast<size_t>(*width);
}

std::vector<Value> index_tensors(const Expansion& e, size_t i, size_t rank) {
  const Value whole = e.any(i);
  std::vector<Value> items{whole};
  if (const auto* infos = whole->struct_info.as<relax::TupleStructInfo>()) {
    items.clear();
    for (size_t k = 0; k < infos->items.size(); ++k) items.push_back(e.item(whole, static_cast<int64_t>(k)));
  }
  for (const Value& item : items) {
    const TensorStructInfo* info = relax::as_tensor(item);
    if (!info || !info->shape || info->dtype.is_void())
      e.refuse(codes::wrong_arguments, "the indices are a tuple of tensors of known shape and dtype");
    if (info->dtype.is_bool())
      e.refuse(codes::dtype_not_supported, "bool is no index; R.nonzero gives the indices of what is true");
    if (!info->dtype.is_integer())
      e.refuse(codes::dtype_not_supported,
               "the indices are " + relax::text_of(*info) + ", but they must be of integers");
  }
  if (items.empty() || items.size() > rank)
    e.refuse(codes::wrong_arguments, "there are " + std::to_string(items.size()) + " index tensors for data of rank " +
                                         std::to_string(rank) + "; one to as many as it has dimensions fit");
  return items;
}

Shape index_shape(const Expansion& e, const std::vector<Value>& indices) {
  relax::Assumptions assumptions;
  Shape shape = build::shape_of(indices[0]);
  for (const Value& each : indices)
    shape = relax::broadcast_shapes(shape, build::shape_of(each), &assumptions).value_or_throw();
  for (const auto& [actual, expected] : assumptions) build::expect_equal(e.b, actual, expected);
  return shape;
}

const Operator gather_elements =
    composite("gather_elements", {{"data"}, {"indices"}}, relax::attributes_of<AxisAttributes>(),
              expand_gather_elements, "numpy.take_along_axis(data, indices, axis)");
const Operator gather_nd =
    composite("gather_nd", {{"data"}, {"indices"}}, relax::attributes_of<GatherNdAttributes>(), expand_gather_nd,
              "data[tuple(numpy.moveaxis(indices, -1, 0))] for each of the first batch_dims dimensions");
const Operator index_tensor =
    composite("index_tensor", {{"data"}, {"indices"}}, nullptr, expand_index_tensor, "data[indices]");
// What R.take with a mode and R.split with positions mean.
const Operator take_by_mode =
    composite("take_by_mode", {{"x"}, {"indices"}}, relax::attributes_of<TakeByModeAttributes>(), expand_take_by_mode,
              "numpy.take(x, indices, axis, mode=mode)");
const Operator split_at = composite("split_at", {{"x"}}, relax::attributes_of<SplitAtAttributes>(), expand_split_at,
                                    "numpy.split(x, positions, axis)");

}  // namespace lathe::ops::composites
