// Elements in another order or shape.
#include "ops/composites/operands.h"

namespace lathe::ops::composites {

namespace {

struct FlipAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "FlipAttributes";
  std::optional<int64_t> axis;
  static constexpr auto fields() { return std::tuple{field("axis", &FlipAttributes::axis)}; }
};

struct RepeatAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "RepeatAttributes";
  std::optional<int64_t> repeats, axis;  // no axis: of the flattened tensor
  static constexpr auto fields() {
    return std::tuple{field("repeats", &RepeatAttributes::repeats), field("axis", &RepeatAttributes::axis)};
  }
};

struct MeshgridAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "MeshgridAttributes";
  std::string indexing = "ij";
  static constexpr auto fields() { return std::tuple{field("indexing", &MeshgridAttributes::indexing)}; }
};

Expr count_of(const Value& x) { return relax::simplified(ir::product(build::shape_of(x))); }

Value expand_size(const Expansion& e) { return scalar_tensor(e, DType::int64(), count_of(e.tensor(0))); }

Value expand_flatten(const Expansion& e) { return e.reshape(e.tensor(0), {count_of(e.tensor(0))}); }

Value expand_batch_flatten(const Expansion& e) {
  const Shape& own = build::shape_of(e.tensor(0));
  if (own.empty()) e.refuse(codes::wrong_rank, "the argument 'x' is a scalar, which is no batch");
  return e.reshape(e.tensor(0), {own[0], relax::simplified(ir::product({own.begin() + 1, own.end()}))});
}

Value expand_stack(const Expansion& e) {
  const std::vector<Value> tensors = e.tensors();
  if (tensors.empty()) e.refuse(codes::wrong_arguments, "there are no tensors");
  expect_one_dtype(e, tensors);
  const Shape& first = build::shape_of(tensors[0]);
  const int64_t axis = e.axis(e.attrs<AxisAttributes>().axis, first.size() + 1);
  std::vector<Value> layers;
  for (const Value& each : tensors) {
    const Shape& own = build::shape_of(each);
    bool fits = own.size() == first.size();
    for (size_t d = 0; fits && d < own.size(); ++d) fits = !relax::different_extents(own[d], first[d]);
    if (!fits)
      e.refuse(codes::shape_mismatch,
               "the shapes " + relax::text_of(first) + " and " + relax::text_of(own) + " differ");
    for (size_t d = 0; d < own.size(); ++d) build::expect_equal(e.b, own[d], first[d]);
    layers.push_back(e.call(ops::expand_dims, {each}, ir::make<AxesAttributes>(std::optional(Axes{axis}))));
  }
  return e.call(ops::concat, std::move(layers), ir::make<AxisAttributes>(axis));
}

Value expand_flip(const Expansion& e) {
  const auto& given = e.attrs<FlipAttributes>().axis;
  if (!given) e.refuse(codes::wrong_attribute, "the attribute 'axis' is missing");
  const int64_t axis = e.axis(*given, build::shape_of(e.tensor(0)).size());
  using Limits = std::numeric_limits<int64_t>;
  return e.call(ops::strided_slice,
                {e.tensor(0), ir::make<relax::ShapeExpr>(Shape{ir::int64(Limits::max())}),
                 ir::make<relax::ShapeExpr>(Shape{ir::int64(Limits::min())})},
                ir::make<StridedSliceAttributes>(Axes{axis}, Axes{-1}));
}

// Each element is spread along a new axis behind its own, which then joins it.
Value expand_repeat(const Expansion& e) {
  const auto& how = e.attrs<RepeatAttributes>();
  if (!how.repeats) e.refuse(codes::wrong_attribute, "the attribute 'repeats' is missing");
  if (*how.repeats < 0)
    e.refuse(codes::wrong_attribute, "repeats is " + std::to_string(*how.repeats) + ", but it must be 0 or more");
  const Value x = how.axis ? e.tensor(0) : e.reshape(e.tensor(0), {count_of(e.tensor(0))});
  const Shape own = build::shape_of(x);
  const int64_t axis = how.axis ? e.axis(*how.axis, own.size()) : 0;
  Shape spread = own, result = own;
  spread.insert(spread.begin() + axis + 1, ir::int64(*how.repeats));
  result[static_cast<size_t>(axis)] = relax::simplified(own[static_cast<size_t>(axis)] * *how.repeats);
  const Value open = e.call(ops::expand_dims, {x}, ir::make<AxesAttributes>(std::optional(Axes{axis + 1})));
  return e.reshape(e.call(ops::broadcast_to, {open, ir::make<relax::ShapeExpr>(spread)}), result);
}

// Tensor k varies along dimension k; "xy" swaps the first two dimensions.
Value expand_meshgrid(const Expansion& e) {
  const std::vector<Value> tensors = e.tensors();
  const std::string& indexing = e.attrs<MeshgridAttributes>().indexing;
  if (indexing != "ij" && indexing != "xy")
    e.refuse(codes::wrong_attribute, "there is no indexing '" + indexing + "'; \"ij\" and \"xy\" are known");
  if (tensors.empty()) e.refuse(codes::wrong_arguments, "there are no tensors");
  expect_one_dtype(e, tensors);
  Shape shape;
  for (const Value& each : tensors) {
    if (const Shape& own = build::shape_of(each); own.size() != 1)
      e.refuse(codes::wrong_rank, "a tensor is " + relax::text_of(own) + ", but each must be a vector");
    shape.push_back(build::shape_of(each)[0]);
  }
  const bool swaps = indexing == "xy" && shape.size() > 1;
  if (swaps) std::swap(shape[0], shape[1]);
  std::vector<Value> grids;
  for (size_t k = 0; k < tensors.size(); ++k) {
    Shape line(shape.size(), ir::int64(1));
    const size_t along = swaps && k < 2 ? 1 - k : k;
    line[along] = shape[along];
    grids.push_back(e.call(ops::broadcast_to, {e.reshape(tensors[k], line), ir::make<relax::ShapeExpr>(shape)}));
  }
  return e.tuple(std::move(grids));
}

// Of matrices, what is not above, or not below, the diagonal that is k above the main one.
template <bool upper>
Value expand_triangle(const Expansion& e) {
  const Value& x = e.tensor(0);
  const Shape shape = build::shape_of(x);
  const DType dtype = element_dtype(e, build::dtype_of(x));
  if (shape.size() < 2)
    e.refuse(codes::wrong_rank, "the argument 'x' is " + relax::text_of(shape) + ", but it must be of matrices");
  Numbers numbers({x});
  const auto k = numbers.add(e, DType::int64(), integer_argument(e, 1, "k", ir::int64(0)));
  const auto make = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const Indices& i) {
          const Expr above = i[i.size() - 1] - i[i.size() - 2];
          return ir::select(upper ? above >= k(in) : above <= k(in), in[0](i), ir::constant(dtype, 0));
        },
        in, upper ? "triu" : "tril")};
  };
  return e.b.call_te(upper ? "triu" : "tril", numbers.operands, make).value_or_throw();
}

}  // namespace

const Operator element_count = composite("size", {{"x"}}, nullptr, expand_size, "numpy.int64(x.size)");
const Operator flatten = composite("flatten", {{"x"}}, nullptr, expand_flatten, "numpy.ravel(x)");
const Operator batch_flatten =
    composite("nn.batch_flatten", {{"x"}}, nullptr, expand_batch_flatten, "x.reshape(len(x), -1)");
const Operator stack = composite("stack", {{"tensors", Input::variadic}}, relax::attributes_of<AxisAttributes>(),
                                 expand_stack, "numpy.stack(tensors, axis)");
const Operator flip =
    composite("flip", {{"data"}}, relax::attributes_of<FlipAttributes>(), expand_flip, "numpy.flip(data, axis)");
const Operator repeat = composite("repeat", {{"data"}}, relax::attributes_of<RepeatAttributes>(), expand_repeat,
                                  "numpy.repeat(data, repeats, axis)");
const Operator meshgrid =
    composite("meshgrid", {{"tensors", Input::variadic}}, relax::attributes_of<MeshgridAttributes>(), expand_meshgrid,
              "numpy.meshgrid(*tensors, indexing=indexing)");
const Operator tril = composite("tril", {{"x"}, {"k", Input::optional, Input::scalar}}, nullptr, expand_triangle<false>,
                                "numpy.tril(x, k)");
const Operator triu = composite("triu", {{"x"}, {"k", Input::optional, Input::scalar}}, nullptr, expand_triangle<true>,
                                "numpy.triu(x, k)");

}  // namespace lathe::ops::composites
