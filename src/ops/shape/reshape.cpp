// Operators that give the same elements in the same order another shape: reshape, expand_dims, squeeze.
#include "ops/gradient/gradient.h"
#include "ops/rule.h"

namespace lathe::ops {

namespace {

// One extent may be -1: what the others leave.
Result<StructInfo> infer_reshape(const InferContext& c) {
  const TensorStructInfo& x = *TRY(relax::tensor_argument(c, 0));
  Shape shape = TRY(relax::shape_argument(c, 1));
  std::optional<size_t> open;
  Expr known = ir::int64(1);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!ir::is_int(shape[d], -1)) {
      known = known * shape[d];
      continue;
    }
    if (open)
      return relax::wrong(codes::wrong_attribute, "reshape to " + relax::text_of(shape) + " leaves two extents open");
    open = d;
  }
  if (!x.shape && open) return relax::tensor_info_of_rank(static_cast<int64_t>(shape.size()), x.dtype);
  if (!x.shape) return relax::tensor_info(std::move(shape), x.dtype);
  const Expr count = ir::product(*x.shape);
  if (open) {
    if (ir::is_int(known, 0))
      return relax::wrong(codes::shape_mismatch, "reshape of " + relax::text_of(x) + " to " + relax::text_of(shape) +
                                                     ": the open extent could be any");
    if (!relax::may_be(ir::floormod(count, known), ir::int64(0), c.assumptions))
      return relax::wrong(codes::shape_mismatch, "cannot reshape " + relax::text_of(x) + " to " +
                                                     relax::text_of(shape) + ": " + relax::text_of(count) +
                                                     " elements are not a multiple of " + relax::text_of(known));
    Shape others = shape;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(*open));
    shape[*open] = relax::extent_left(*x.shape, others);
  } else if (!relax::may_be(count, known, c.assumptions)) {
    return relax::wrong(codes::shape_mismatch, "cannot reshape " + relax::text_of(x) + " to " + relax::text_of(shape) +
                                                   ": " + relax::text_of(count) + " and " + relax::text_of(known) +
                                                   " elements");
  }
  return relax::tensor_info(std::move(shape), x.dtype);
}

// The index into `from` of the element that has index `i` in `to`. Both are cut where their leading products agree, so
// that dimensions that stay are indexed as they are.
Indices reindexed(const Shape& from, const Shape& to, const Indices& i) {
  Indices own(from.size());
  size_t f = 0, t = 0;
  while (f < from.size() || t < to.size()) {
    const size_t f0 = f, t0 = t;
    Expr left = f < from.size() ? from[f++] : ir::int64(1);
    Expr right = t < to.size() ? to[t++] : ir::int64(1);
    while (!relax::same_extent(left, right)) {
      const auto a = ir::as_int(left), b = ir::as_int(right);
      const bool more_left = f < from.size() && (t >= to.size() || !a || !b || *a < *b);
      if (more_left)
        left = left * from[f++];
      else if (t < to.size())
        right = right * to[t++];
      else
        break;
    }
    Expr flat = ir::int64(0);
    for (size_t d = t0; d < t; ++d) flat = flat * to[d] + i[d];
    for (size_t d = f; d-- > f0;) {
      own[d] = d == f0 ? flat : ir::floormod(flat, from[d]);
      flat = ir::floordiv(flat, from[d]);
    }
  }
  return own;
}

std::vector<Tensor> lower_reshape(const LowerContext& c) {
  const Tensor& x = c.tensor(0);
  const Shape& shape = *c.output().shape;
  return {te::compute(shape, [&](const Indices& i) { return x(reindexed(x.shape(), shape, i)); }, {x}, "reshape")};
}

Result<StructInfo> infer_expand_dims(const InferContext& c) {
  const TensorStructInfo& x = *TRY(relax::tensor_argument(c, 0));
  const Axes given = c.attrs<AxesAttributes>().axis.value_or(Axes{});
  if (x.ndim < 0) return relax::tensor_info_of_rank(-1, x.dtype);
  const int64_t rank = x.ndim + static_cast<int64_t>(given.size());
  const Axes axes = TRY(relax::normalize_axes(c, given, rank));
  if (!x.shape) return relax::tensor_info_of_rank(rank, x.dtype);
  Shape shape = *x.shape;
  for (const int64_t axis : axes) shape.insert(shape.begin() + axis, ir::int64(1));
  return relax::tensor_info(std::move(shape), x.dtype);
}

Result<StructInfo> infer_squeeze(const InferContext& c) {
  const TensorStructInfo& x = *TRY(relax::tensor_argument(c, 0));
  const auto& given = c.attrs<AxesAttributes>().axis;
  if (!x.shape) {
    const bool known = given && x.ndim >= 0;
    return relax::tensor_info_of_rank(known ? x.ndim - static_cast<int64_t>(given->size()) : -1, x.dtype);
  }
  const Axes axes = TRY(relax::normalize_axes(c, given.value_or(Axes{}), x.ndim));
  Shape shape;
  for (size_t d = 0; d < x.shape->size(); ++d) {
    const Expr& extent = (*x.shape)[d];
    const bool named = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    if (named && !relax::may_be(extent, ir::int64(1), c.assumptions))
      return relax::wrong(codes::shape_mismatch, "axis " + std::to_string(d) + " of " + relax::text_of(x) +
                                                     " cannot be squeezed: its extent is " + relax::text_of(extent));
    if (given ? !named : !ir::is_int(extent, 1)) shape.push_back(extent);
  }
  return relax::tensor_info(std::move(shape), x.dtype);
}

}  // namespace

const Operator reshape{
    .name = "reshape",
    .inputs = {{"x"}, {"shape", Input::required, Input::shape}},
    .infer = infer_reshape,
    .meaning = relax::TeExpression(lower_reshape),
    .fusion = FusionKind::injective,
    .is_view = true,
    .gradient = gradient_of_view,
    .reference = "numpy.reshape(x, shape)",
};

const Operator expand_dims{
    .name = "expand_dims",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<AxesAttributes>(),
    .infer = infer_expand_dims,
    .meaning = relax::TeExpression(lower_reshape),
    .fusion = FusionKind::injective,
    .is_view = true,
    .gradient = gradient_of_view,
    .reference = "numpy.expand_dims(x, axis)",
};

const Operator squeeze{
    .name = "squeeze",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<AxesAttributes>(),
    .infer = infer_squeeze,
    .meaning = relax::TeExpression(lower_reshape),
    .fusion = FusionKind::injective,
    .is_view = true,
    .gradient = gradient_of_view,
    .reference = "numpy.squeeze(x, axis)",
};

}  // namespace lathe::ops
