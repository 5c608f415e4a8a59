// Elements in order: sort, argsort, topk; and places in what is in order: bucketize, multinomial_from_uniform. Of
// equals the first comes first; NaN is larger than any number.
#include "ops/composites/operands.h"

namespace lathe::ops::composites {

namespace {

struct SortAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "SortAttributes";
  int64_t axis = -1;
  bool descending = false;
  static constexpr auto fields() {
    return std::tuple{field("axis", &SortAttributes::axis), field("descending", &SortAttributes::descending)};
  }
};

struct ArgsortAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "ArgsortAttributes";
  int64_t axis = -1;
  bool descending = false;
  DType dtype = DType::int32();
  static constexpr auto fields() {
    return std::tuple{field("axis", &ArgsortAttributes::axis), field("descending", &ArgsortAttributes::descending),
                      field("dtype", &ArgsortAttributes::dtype)};
  }
};

struct TopkAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "TopkAttributes";
  int64_t k = 1;  // less than 1: all
  int64_t axis = -1;
  std::string ret_type = "both";  // or "values", "indices"
  bool largest = true;
  DType dtype = DType::int32();  // of the indices
  static constexpr auto fields() {
    return std::tuple{field("k", &TopkAttributes::k), field("axis", &TopkAttributes::axis),
                      field("ret_type", &TopkAttributes::ret_type), field("largest", &TopkAttributes::largest),
                      field("dtype", &TopkAttributes::dtype)};
  }
};

struct BucketizeAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "BucketizeAttributes";
  bool out_int32 = false, right = false;
  static constexpr auto fields() {
    return std::tuple{field("out_int32", &BucketizeAttributes::out_int32), field("right", &BucketizeAttributes::right)};
  }
};

struct MultinomialAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "MultinomialAttributes";
  DType dtype = DType::int64();
  static constexpr auto fields() { return std::tuple{field("dtype", &MultinomialAttributes::dtype)}; }
};

DType index_dtype(const Expansion& e, DType dtype) {
  if (!dtype.is_scalar() || !dtype.is_integer() || dtype.is_bool())
    e.refuse(codes::dtype_not_supported, "indices are integers, not " + dtype.str());
  return dtype;
}

// Numbers or bool.
void expect_order(const Expansion& e, std::string_view name) {
  if (!build::dtype_of(e.tensor(0)).is_bool()) expect_dtype(e, 0, name, DTypeSet::numeric);
}

Value expand_argsort(const Expansion& e) {
  const auto& how = e.attrs<ArgsortAttributes>();
  expect_order(e, "data");
  const DType dtype = index_dtype(e, how.dtype);
  const int64_t axis = e.axis(how.axis, build::shape_of(e.tensor(0)).size());
  return e.cast(build::sorted_places(e.b, e.tensor(0), axis, how.descending), dtype);
}

Value expand_sort(const Expansion& e) {
  const auto& how = e.attrs<SortAttributes>();
  expect_order(e, "x");
  const int64_t axis = e.axis(how.axis, build::shape_of(e.tensor(0)).size());
  return build::gather_elements(e.b, e.tensor(0), build::sorted_places(e.b, e.tensor(0), axis, how.descending), axis);
}

Value expand_topk(const Expansion& e) {
  const auto& how = e.attrs<TopkAttributes>();
  const Value& x = e.tensor(0);
  expect_dtype(e, 0, "data", DTypeSet::numeric);
  const DType dtype = index_dtype(e, how.dtype);
  const Shape own = build::shape_of(x);
  const int64_t axis = e.axis(how.axis, own.size());
  const Expr& extent = own[static_cast<size_t>(axis)];
  if (const auto known = ir::as_int(extent); known && how.k > *known)
    e.refuse(codes::wrong_attribute, "k is " + std::to_string(how.k) + ", but axis " + std::to_string(axis) + " of " +
                                         relax::text_of(own) + " has no more than " + std::to_string(*known) +
                                         " elements");
  else if (!known && how.k > 0)
    build::expect(e.b, extent >= how.k,
                  relax::Message() << "k is " << std::to_string(how.k) << ", but the axis has no more than " << extent
                                   << " elements");
  if (how.ret_type != "both" && how.ret_type != "values" && how.ret_type != "indices")
    e.refuse(codes::wrong_attribute, "the ret_type '" + how.ret_type + "' is none of 'both', 'values' and 'indices'");
  Value values, places;
  if (how.k < 1) {
    places = build::sorted_places(e.b, x, axis, how.largest);
    if (how.ret_type != "indices") values = build::gather_elements(e.b, x, places, axis);
  } else {
    const Expr count = relax::simplified(ir::min(ir::int64(how.k), extent));
    std::tie(values, places) = build::top_k(e.b, x, count, axis, how.largest);
  }
  if (how.ret_type == "values") return values;
  places = e.cast(places, dtype);
  return how.ret_type == "indices" ? places : e.tuple({values, places});
}

// How many boundaries, which ascend, are less than the element, or not greater with `right`.
Value expand_bucketize(const Expansion& e) {
  const auto& how = e.attrs<BucketizeAttributes>();
  const Value &x = e.tensor(0), &boundaries = e.tensor(1);
  expect_dtype(e, 0, "input_tensor", DTypeSet::numeric);
  expect_one_dtype(e, {x, boundaries});
  const Shape own = build::shape_of(x), given = build::shape_of(boundaries);
  if (given.size() != 1)
    e.refuse(codes::wrong_rank, "the boundaries are " + relax::text_of(given) + ", but they must be a vector");
  const DType dtype = how.out_int32 ? DType::int32() : DType::int64();
  if (ir::is_int(given[0], 0)) return e.call(ops::full, {ir::make<relax::ShapeExpr>(own), build::scalar(dtype, 0)});
  const auto make = [&](const std::vector<Tensor>& in) {
    const ir::IterVar k = te::reduce_axis(ir::int64(0), given[0], "k");
    return std::vector{te::compute(
        own,
        [&](const Indices& i) {
          const Expr element = in[0](i), boundary = in[1]({k->var});
          const Expr is_not_below = how.right ? boundary > element : boundary >= element;
          return te::sum(ir::cast(dtype, ir::logical_not(is_not_below)), {k});
        },
        in, "bucketize")};
  };
  return e.b.call_te("bucketize", {x, boundaries}, make).value_or_throw();
}

// How many cumulated probabilities of the sample's row do not exceed the sample; where rounding leaves none that does,
// the last index.
Value expand_multinomial(const Expansion& e) {
  const DType dtype = index_dtype(e, e.attrs<MultinomialAttributes>().dtype);
  expect_dtype(e, 0, "prob", DTypeSet::floating);
  expect_dtype(e, 1, "uniform_sample", DTypeSet::floating);
  expect_dtype(e, 2, "sample_indices", DTypeSet::integer);
  const Shape shape = build::shape_of(e.tensor(0)), samples = build::shape_of(e.tensor(1)),
              rows = build::shape_of(e.tensor(2));
  if (shape.size() != 2)
    e.refuse(codes::wrong_rank, "the probabilities are " + relax::text_of(shape) + ", but they must be a matrix");
  const auto expect_column = [&](const Shape& given, const std::string& name) {
    if (given.size() != 2 || relax::different_extents(given[1], ir::int64(1)))
      e.refuse(codes::wrong_rank, name + " is " + relax::text_of(given) + ", but it must be a column, [n, 1]");
    build::expect_equal(e.b, given[1], ir::int64(1));
  };
  expect_column(samples, "uniform_sample");
  expect_column(rows, "sample_indices");
  if (relax::different_extents(samples[0], rows[0]))
    e.refuse(codes::shape_mismatch, "uniform_sample has " + relax::text_of(samples[0]) + " rows, but sample_indices " +
                                        relax::text_of(rows[0]));
  build::expect_equal(e.b, rows[0], samples[0]);
  const Expr count = relax::simplified(shape[0] * shape[1]);
  const bool is_empty = ir::is_int(shape[0], 0) || ir::is_int(shape[1], 0);
  if (is_empty && ir::as_int(samples[0]) && !ir::is_int(samples[0], 0))
    e.refuse(codes::shape_mismatch, "of the probabilities " + relax::text_of(shape) + " there is none to draw");
  if (!ir::as_int(count) || is_empty)
    build::expect(e.b, ir::logical_or(count > 0, ir::eq(samples[0], ir::int64(0))),
                  relax::Message() << "of the probabilities " << shape << " there is none to draw");
  const auto wide_of = [&](size_t i) { return relax::accumulation_dtype(build::dtype_of(e.tensor(i))); };
  const DType wide = wide_of(0).bits >= wide_of(1).bits ? wide_of(0) : wide_of(1);
  const Shape folded{shape[0], shape[1], ir::int64(1)};
  const Value sums = e.reshape(build::cumulate(e.b, e.reshape(e.cast(e.tensor(0), wide), folded), {}), shape);
  const auto make = [&](const std::vector<Tensor>& in) {
    const ir::IterVar k = te::reduce_axis(ir::int64(0), shape[1], "k");
    const Tensor passed = te::compute(
        {samples[0]},
        [&](const Indices& i) {
          const Indices at{i[0], ir::int64(0)};
          const Expr row = build::index_into(in[2](at), shape[0]);
          const Expr is_above = in[0]({row, k->var}) > ir::cast(wide, in[1](at));
          return te::sum(ir::cast(DType::int64(), ir::logical_not(is_above)), {k});
        },
        in, "passed");
    return std::vector{te::compute(
        {samples[0], ir::int64(1)},
        [&](const Indices& i) { return ir::cast(dtype, ir::min(passed({i[0]}), shape[1] - 1)); }, {passed},
        "multinomial")};
  };
  return e.b.call_te("multinomial", {sums, e.tensor(1), e.tensor(2)}, make).value_or_throw();
}

}  // namespace

const Operator argsort = composite("argsort", {{"data"}}, relax::attributes_of<ArgsortAttributes>(), expand_argsort,
                                   "numpy.argsort(data, axis, kind='stable').astype(dtype)");
const Operator sort =
    composite("sort", {{"x"}}, relax::attributes_of<SortAttributes>(), expand_sort, "numpy.sort(x, axis)");
const Operator topk = composite("topk", {{"data"}}, relax::attributes_of<TopkAttributes>(), expand_topk,
                                "i = numpy.argsort(-data, axis, kind='stable')[..., :k]; "
                                "(numpy.take_along_axis(data, i, axis), i)");
const Operator bucketize =
    composite("bucketize", {{"input_tensor"}, {"boundaries"}}, relax::attributes_of<BucketizeAttributes>(),
              expand_bucketize, "numpy.searchsorted(boundaries, input_tensor, 'right' if right else 'left')");
const Operator multinomial_from_uniform =
    composite("multinomial_from_uniform", {{"prob"}, {"uniform_sample"}, {"sample_indices"}},
              relax::attributes_of<MultinomialAttributes>(), expand_multinomial,
              "(numpy.cumsum(prob, 1)[sample_indices[:, 0]] > uniform_sample).argmax(1)[:, None]");

}  // namespace lathe::ops::composites
