// Losses: nn.cross_entropy_with_logits, nn.nll_loss.
#include "ops/composites/windows.h"

namespace lathe::ops::composites {

namespace {

struct NllLossAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "NllLossAttributes";
  std::string reduction = "mean";  // "sum", "none"
  int64_t ignore_index = -100;
  static constexpr auto fields() {
    return std::tuple{field("reduction", &NllLossAttributes::reduction),
                      field("ignore_index", &NllLossAttributes::ignore_index)};
  }
};

void check_floating_loss(const Expansion& e, size_t i, std::string_view name) {
  const DType dtype = build::dtype_of(e.tensor(i));
  if (!relax::contains(DTypeSet::floating, dtype))
    e.refuse(codes::dtype_not_supported, std::string(name) + " is of a floating dtype, not " + dtype.str());
}

relax::AttributesRef over_all() { return ir::make<ReduceAttributes>(std::optional<std::vector<int64_t>>(), false); }

// -sum(predictions * labels), of a batch its mean.
Value expand_cross_entropy(const Expansion& e) {
  const Value &predictions = e.tensor(0), &labels = e.tensor(1);
  check_floating_loss(e, 0, "predictions");
  check_floating_loss(e, 1, "labels");
  const Shape own = build::shape_of(predictions), other = build::shape_of(labels);
  const DType dtype = build::dtype_of(predictions), wide = relax::accumulation_dtype(dtype);
  if (build::dtype_of(labels) != dtype)
    e.refuse(codes::dtype_mismatch, "predictions are " + dtype.str() + ", but labels " + build::dtype_of(labels).str());
  bool fits = own.size() == other.size();
  for (size_t d = 0; fits && d < own.size(); ++d) fits = !relax::different_extents(own[d], other[d]);
  if (!fits)
    e.refuse(codes::shape_mismatch,
             "predictions " + relax::text_of(own) + " and labels " + relax::text_of(other) + " differ in shape");
  for (size_t d = 0; d < own.size(); ++d) build::expect_equal(e.b, other[d], own[d]);
  const Value products = e.call(ops::multiply, {e.cast(predictions, wide), e.cast(labels, wide)});
  Value y = e.call(ops::negative, {e.call(ops::sum, {products}, over_all())});
  if (own.size() > 1) y = e.call(ops::divide, {y, e.cast(scalar_tensor(e, DType::float_(64), own[0]), wide)});
  return e.cast(y, dtype);
}

// The model fails where a class is none of those that are scored.
void expect_classes(const Expansion& e, const Value& classes, const Expr& count, int64_t ignored) {
  const build::Finding found = build::find_element(e.b, classes, [&](const Expr& element, const Expr&) {
    const Expr value = ir::cast(DType::int64(), element);
    return ir::logical_and(ir::ne(value, ir::int64(ignored)), ir::logical_or(value < 0, value >= count));
  });
  if (!ir::is_int(found.position, -1))
    build::expect(e.b, found.position < 0,
                  relax::Message() << "targets of R.nn.nll_loss hold " << found.value
                                   << ", but there are classes in [0, " << count << ")");
}

Value expand_nll_loss(const Expansion& e) {
  const auto& a = e.attrs<NllLossAttributes>();
  if (a.reduction != "mean" && a.reduction != "sum" && a.reduction != "none")
    e.refuse(codes::wrong_attribute, "reduction is 'mean', 'sum' or 'none', not '" + a.reduction.substr(0, 40) + "'");
  check_floating_loss(e, 0, "predictions");
  const DType dtype = build::dtype_of(e.tensor(0)), wide = relax::accumulation_dtype(dtype);
  const Shape own = build::shape_of(e.tensor(0)), shape = build::shape_of(e.tensor(1));
  if (own.empty()) e.refuse(codes::wrong_rank, "predictions have at least one dimension, the classes");
  if (!build::dtype_of(e.tensor(1)).is_integer())
    e.refuse(codes::dtype_not_supported, "targets are integers, not " + build::dtype_of(e.tensor(1)).str());
  Value scores = e.cast(e.tensor(0), wide), classes = e.tensor(1), weights;
  bool fits = shape.size() + 1 == own.size();
  for (size_t d = 0; fits && d < shape.size(); ++d) fits = !relax::different_extents(shape[d], own[d == 0 ? 0 : d + 1]);
  if (!fits)
    e.refuse(codes::shape_mismatch,
             "predictions are [batch, classes, …] or "
             "[classes], targets the same without "
             "classes, but their shapes are " +
                 relax::text_of(own) + " and " + relax::text_of(shape));
  for (size_t d = 0; d < shape.size(); ++d) build::expect_equal(e.b, shape[d], own[d == 0 ? 0 : d + 1]);
  if (own.size() == 1) {
    scores = e.reshape(scores, {ir::int64(1), own[0]});
    classes = e.reshape(classes, {ir::int64(1)});
  }
  const Expr count = build::shape_of(scores)[1];
  if (e.has(2)) {
    check_floating_loss(e, 2, "weights");
    const Shape& given = build::shape_of(e.tensor(2));
    if (given.size() != 1 || relax::different_extents(given[0], count))
      e.refuse(codes::shape_mismatch, "weights have one number for each of " + relax::text_of(count) +
                                          " classes, but their shape is " + relax::text_of(given));
    build::expect_equal(e.b, given[0], count);
    weights = e.cast(e.tensor(2), wide);
  }
  expect_classes(e, classes, count, a.ignore_index);
  const auto [loss, weight] = build::class_loss(e.b, scores, classes, weights, a.ignore_index);
  if (a.reduction == "none") return e.cast(e.reshape(loss, shape), dtype);
  const Value total = e.call(ops::sum, {loss}, over_all());
  if (a.reduction == "sum") return e.cast(total, dtype);
  return e.cast(e.call(ops::divide, {total, e.call(ops::sum, {weight}, over_all())}), dtype);
}

}  // namespace

const Operator cross_entropy_with_logits =
    composite("nn.cross_entropy_with_logits", {{"predictions"}, {"labels"}}, nullptr, expand_cross_entropy,
              "-numpy.sum(predictions * labels) / (len(predictions) if "
              "predictions.ndim > 1 else 1)");
const Operator nll_loss = composite("nn.nll_loss", {{"predictions"}, {"targets"}, {"weights", Input::optional}},
                                    relax::attributes_of<NllLossAttributes>(), expand_nll_loss,
                                    "-(numpy.take_along_axis(predictions, targets[:, None], 1)[:, 0] * "
                                    "weights[targets]).sum() / "
                                    "weights[targets].sum()");

}  // namespace lathe::ops::composites
