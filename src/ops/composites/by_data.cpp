// Results of as many elements as the values say: nonzero, unique, dynamic_strided_slice.
#include "ops/build/by_data.h"

#include "ops/composites/operands.h"
#include "relax/tensor_to_shape.h"

namespace lathe::ops::composites {

namespace {

struct UniqueAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "UniqueAttributes";
  bool sorted = true;  // else in order of first appearance
  bool return_index = false, return_inverse = false, return_counts = false;
  std::optional<int64_t> axis;  // nothing: the elements
  static constexpr auto fields() {
    return std::tuple{field("sorted", &UniqueAttributes::sorted),
                      field("return_index", &UniqueAttributes::return_index),
                      field("return_inverse", &UniqueAttributes::return_inverse),
                      field("return_counts", &UniqueAttributes::return_counts), field("axis", &UniqueAttributes::axis)};
  }
};

void expect_values(const Expansion& e) {
  if (!build::dtype_of(e.tensor(0)).is_bool()) expect_dtype(e, 0, "x", DTypeSet::numeric);
}

Value expand_nonzero(const Expansion& e) {
  expect_values(e);
  return build::nonzero(e.b, e.tensor(0));
}

Value expand_unique(const Expansion& e) {
  const auto& how = e.attrs<UniqueAttributes>();
  expect_values(e);
  const Shape own = build::shape_of(e.tensor(0));
  const Value x = how.axis ? e.tensor(0) : e.reshape(e.tensor(0), {relax::simplified(ir::product(own))});
  const int64_t axis = how.axis ? e.axis(*how.axis, own.size()) : 0;
  const bool is_empty = ir::is_int(build::shape_of(x)[static_cast<size_t>(axis)], 0);
  build::UniqueRows found;
  if (is_empty) {
    const Value none =
        e.call(ops::full, {ir::make<relax::ShapeExpr>(Shape{ir::int64(0)}), build::scalar(DType::int64(), 0)});
    found = {none, none, none};
  } else {
    found = build::unique_rows(e.b, build::rows_along(e.b, x, axis), how.sorted);
  }
  std::vector<Value> wanted{x};
  if (!is_empty) wanted[0] = e.call(ops::take, {x, found.first}, ir::make<AxisAttributes>(axis));
  if (how.return_index) wanted.push_back(found.first);
  if (how.return_inverse) wanted.push_back(found.inverse);
  if (how.return_counts) wanted.push_back(found.counts);
  return wanted.size() == 1 ? wanted[0] : e.tuple(std::move(wanted));
}

// The integers of a vector of `count`: those of a constant, else symbols for what the run gives.
Shape integers_of(const Expansion& e, size_t i, const std::string& name, size_t count) {
  const Value& x = e.tensor(i);
  expect_dtype(e, i, name, DTypeSet::integer);
  const Shape own = build::shape_of(x);
  const Expr wanted = ir::int64(static_cast<int64_t>(count));
  if (own.size() != 1 || relax::different_extents(own[0], wanted))
    e.refuse(codes::shape_mismatch, "the argument '" + name + "' is " + relax::text_of(own) +
                                        ", but it must be a vector of " + std::to_string(count) +
                                        " integers, one a dimension");
  if (!ir::as_int(own[0]))
    e.refuse(codes::shape_mismatch, "the length " + relax::text_of(own[0]) + " of '" + name +
                                        "' is not known; R.match_cast gives it " + std::to_string(count));
  Shape values;
  if (const auto* constant = x.as<relax::Constant>()) {
    for (size_t k = 0; k < count; ++k)
      values.push_back(ir::int64(ir::int_at(*constant->data, static_cast<int64_t>(k))));
    return values;
  }
  for (size_t k = 0; k < count; ++k) values.push_back(ir::var(name + "_" + std::to_string(k)));
  const Value read = e.call(relax::tensor_to_shape_operator, {e.cast(x, DType::int64())});
  e.b.match_cast(read, ir::make<relax::ShapeStructInfo>(relax::OptionalShape(values)));
  return values;
}

Value expand_dynamic_strided_slice(const Expansion& e) {
  const Value& x = e.tensor(0);
  const Shape own = build::shape_of(x);
  if (own.empty()) e.refuse(codes::wrong_rank, "a scalar has no dimension to take a part of");
  const Shape begin = integers_of(e, 1, "begin", own.size()), end = integers_of(e, 2, "end", own.size()),
              strides = integers_of(e, 3, "strides", own.size());
  for (size_t d = 0; d < strides.size(); ++d) {
    const auto known = ir::as_int(strides[d]);
    if (known && (*known == 0 || *known == std::numeric_limits<int64_t>::min()))
      e.refuse(codes::wrong_arguments,
               "the stride " + std::to_string(*known) + " of dimension " + std::to_string(d) + " leads nowhere");
    if (!known)
      build::expect(e.b, ir::ne(strides[d], ir::int64(0)),
                    relax::Message() << "the stride of dimension " << std::to_string(d) << " is " << strides[d]
                                     << ", but a stride leads on or back");
  }
  return build::slice_by(e.b, x, begin, end, strides);
}

}  // namespace

const Operator nonzero = composite("nonzero", {{"x"}}, nullptr, expand_nonzero, "numpy.stack(numpy.nonzero(x))");
const Operator unique = composite("unique", {{"x"}}, relax::attributes_of<UniqueAttributes>(), expand_unique,
                                  "numpy.unique(x, return_index, return_inverse, return_counts, axis)");
const Operator dynamic_strided_slice =
    composite("dynamic_strided_slice", {{"x"}, {"begin"}, {"end"}, {"strides"}}, nullptr, expand_dynamic_strided_slice,
              "x[tuple(slice(b, e, s) for b, e, s in zip(begin, end, strides))]");

}  // namespace lathe::ops::composites
