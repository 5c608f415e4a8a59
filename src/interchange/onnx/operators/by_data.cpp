// Operators whose result has as many elements as the values say.
#include "ops/build/by_data.h"

#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "relax/strings.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

void nonzero(NodeImport& c) { c.set(build::nonzero(c.builder(), c.input(0))); }

Expr flat(NodeImport& c, const Expr& x) { return c.reshape(x, {relax::simplified(ir::product(build::shape_of(x)))}); }

// The parts along an axis, or the elements, for which the condition holds; a shorter condition means none of the rest.
void compress(NodeImport& c) {
  Expr x = c.input(0);
  int64_t axis = 0;
  if (c.attributes.has("axis"))
    axis = c.axis(c.attributes.integer("axis", 0), c.rank(0));
  else
    x = flat(c, x);
  if (c.rank(1) != 1)
    c.fail(codes::wrong_node, "the condition has " + std::to_string(c.rank(1)) + " dimensions, but 1 is needed");
  const ir::Expr extent = build::shape_of(x).at(static_cast<size_t>(axis)), length = c.shape(1)[0];
  const auto used = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        {relax::simplified(ir::min(extent, length))}, [&](const std::vector<ir::Expr>& i) { return in[0](i); }, in,
        "condition")};
  };
  const Expr condition = c.builder().call_te("condition", {c.input(1)}, used).value_or_throw();
  const Expr places = build::nonzero(c.builder(), condition);  // [1, n]
  c.set(c.call(ops::take, {x, c.reshape(places, {build::shape_of(places)[1]})}, ir::make<ops::AxisAttributes>(axis)));
}

// The different elements, or parts along an axis, with where they are.
void unique(NodeImport& c) {
  const bool sorted = c.attributes.flag("sorted", true), has_axis = c.attributes.has("axis");
  const Expr x = has_axis ? c.input(0) : flat(c, c.input(0));
  const bool is_text = c.dtype(0) == relax::string_dtype;
  const int64_t axis = has_axis ? c.axis(c.attributes.integer("axis", 0), c.rank(0)) : 0;
  // Of strings their order is sorted; where the first of each is says which they are.
  Expr rows = is_text ? c.call(ops::string_order, {x}) : x;
  rows = build::rows_along(c.builder(), rows, axis);
  const build::UniqueRows found = build::unique_rows(c.builder(), rows, sorted);
  c.set(0, c.call(ops::take, {x, found.first}, ir::make<ops::AxisAttributes>(axis)));
  if (c.wants(1)) c.set(1, found.first);
  if (c.wants(2)) c.set(2, found.inverse);
  if (c.wants(3)) c.set(3, found.counts);
}

void non_max_suppression(NodeImport& c) {
  build::BoxSelection how;
  how.by_center = c.attributes.flag("center_point_box", false);
  if (c.rank(0) != 3 || c.rank(1) != 3)
    c.fail(codes::wrong_node, "the boxes have " + std::to_string(c.rank(0)) + " dimensions and the scores " +
                                  std::to_string(c.rank(1)) + ", but both need 3");
  const Shape boxes = c.shape(0), scores = c.shape(1);
  build::expect_equal(c.builder(), boxes[0], scores[0]);
  build::expect_equal(c.builder(), boxes[1], scores[2]);
  build::expect_equal(c.builder(), boxes[2], ir::int64(4));
  const auto number = [&](size_t i, DType dtype) {
    if (!c.has(i)) return c.reshape(c.scalar(dtype, 0), {ir::int64(1)});
    return c.reshape(c.input(i), {ir::int64(1)});
  };
  how.most = number(2, DType::int64());
  how.iou_threshold = number(3, DType::float32());
  if (c.has(4)) how.score_threshold = number(4, DType::float32());
  c.set(build::non_max_suppression(c.builder(), c.input(0), c.input(1), how));
}

const OperatorRow by_data_rows[] = {
    {"NonZero", {9}, 1, 1, 1, nonzero},
    {"Compress", {9}, 2, 2, 1, compress},
    {"Unique", {11}, 1, 1, 4, unique},
    {"NonMaxSuppression", {10}, 2, 5, 1, non_max_suppression},
};

}  // namespace

Table by_data() { return by_data_rows; }

}  // namespace lathe::onnx::operators
