// Along one axis in order: CumSum, CumProd, TopK.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "interchange/onnx/run_time_axes.h"
#include "ops/build.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

// The product of the extents whose dimension `holds`.
ir::Expr product_where(const Shape& shape, const std::function<ir::Expr(int64_t)>& holds) {
  ir::Expr product = ir::int64(1);
  for (size_t d = 0; d < shape.size(); ++d)
    product = product * ir::select(holds(static_cast<int64_t>(d)), shape[d], ir::int64(1));
  return relax::simplified(product);
}

// The axis may be one that the model computes: the tensor is seen as [before, axis, after].
template <bool product>
void cumulate(NodeImport& c) {
  const build::Cumulation how{product, c.attributes.flag("exclusive", false), c.attributes.flag("reverse", false)};
  const Shape shape = c.shape(0);
  const int64_t rank = c.rank(0);
  const Integers given = c.integers(1);
  if (given.size() != 1) c.fail(codes::wrong_node, "the axis is " + std::to_string(given.size()) + " numbers, not one");
  if (rank == 0) c.fail(codes::wrong_node, "a scalar has no axis");
  c.expect_axes(1, given, rank);
  ir::Expr axis = given[0];
  if (const auto known = ir::as_int(axis))
    axis = ir::int64(c.axis(*known, rank));
  else
    axis = relax::simplified(ir::select(axis < 0, axis + rank, axis));
  const auto at = [](int64_t d) { return ir::int64(d); };
  const Shape folded{product_where(shape, [&](int64_t d) { return relax::simplified(at(d) < axis); }),
                     product_where(shape, [&](int64_t d) { return relax::simplified(ir::eq(at(d), axis)); }),
                     product_where(shape, [&](int64_t d) { return relax::simplified(at(d) > axis); })};
  c.set(c.reshape(build::cumulate(c.builder(), c.reshape(c.input(0), folded), how), shape));
}

void top_k(NodeImport& c) {
  const int64_t axis = c.axis(c.attributes.integer("axis", -1), c.rank(0));
  bool largest = true;
  ir::Expr count;
  if (c.version >= 11) {
    largest = c.attributes.flag("largest", true);
    c.attributes.ignore("sorted");  // in order is allowed where no order is asked for
  }
  if (c.version >= 10) {
    if (!c.has(1)) c.fail(codes::wrong_node, "the input 1 of TopK is missing");
    const Integers given = c.integers(1, 1);
    if (given.size() != 1) c.fail(codes::wrong_node, "the count of TopK is not one number");
    count = given[0];
  } else {
    count = ir::int64(c.attributes.integer("k"));
  }
  if (const auto known = ir::as_int(count); known && *known < 0)
    c.fail(codes::wrong_node, "TopK of " + std::to_string(*known) + " elements");
  if (c.version >= 10) {
    const ir::Expr& extent = c.shape(0)[static_cast<size_t>(axis)];
    const std::string where = "axis " + std::to_string(axis) + " of " + c.name_of(0);
    c.expect_at_least(1, {count}, 0, "no less than 0 elements are taken");
    c.expect(count <= extent, relax::Message() << c.name_of(1) << " asks for " << count << " elements, but " << where
                                               << " has " << extent);
  }
  const auto [values, places] = build::top_k(c.builder(), c.input(0), relax::non_negative(count), axis, largest);
  c.set(0, values);
  if (c.wants(1)) c.set(1, places);
}

const OperatorRow along_rows[] = {
    {"CumSum", {11, 14}, 2, 2, 1, cumulate<false>},
    {"CumProd", {26}, 2, 2, 1, cumulate<true>},
    {"TopK", {1, 10, 11, 24}, 1, 2, 2, top_k},
};

}  // namespace

Table along() { return along_rows; }

}  // namespace lathe::onnx::operators
