// Parts of tensors: strided_slice by ranges, take by indices.
#include "ops/rule.h"
#include "support/mutation.h"

namespace lathe::ops {

LATHE_FAULT(ops_slice_step, "ops_test", "strided_slice: the count of elements ignores the stride");

namespace {

// The range of one axis, as NumPy's x[begin:end:stride] means it: negative positions count from the end, both ends are
// clamped.
struct AxisRange {
  size_t axis;
  Expr begin, extent;
  int64_t stride;
};

Expr clamped(const Expr& position, const Expr& extent, const Expr& low, const Expr& high) {
  const auto known = ir::as_int(position);
  // Exporters write the extremes of int32 and int64 for "to the end".
  if (known && *known >= std::numeric_limits<int32_t>::max() && !ir::as_int(extent)) return high;
  if (known && *known <= std::numeric_limits<int32_t>::min()) return low;
  const Expr from_start =
      known ? (*known < 0 ? extent + position : position) : ir::select(position < 0, position + extent, position);
  return relax::simplified(ir::max(ir::min(from_start, high), low));
}

Result<std::vector<AxisRange>> ranges_of(const InferContext& c, const TensorStructInfo& x) {
  const auto& a = c.attrs<StridedSliceAttributes>();
  const Shape begin = TRY(relax::shape_argument(c, 1)), end = TRY(relax::shape_argument(c, 2));
  Axes axes = a.axes;
  if (axes.empty())
    for (size_t d = 0; d < begin.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  if (begin.size() != axes.size() || end.size() != axes.size() ||
      (!a.strides.empty() && a.strides.size() != axes.size()))
    return relax::wrong(codes::wrong_arguments, "strided_slice has " + std::to_string(begin.size()) + " begins, " +
                                                    std::to_string(end.size()) + " ends, " +
                                                    std::to_string(axes.size()) + " axes and " +
                                                    std::to_string(a.strides.size()) + " strides");
  TRY(relax::normalize_axes(c, axes, x.ndim));
  std::vector<AxisRange> ranges;
  for (size_t k = 0; k < axes.size(); ++k) {
    AxisRange r{static_cast<size_t>(TRY(relax::normalize_axis(c, axes[k], x.ndim))), {}, {}, 1};
    if (!a.strides.empty()) r.stride = a.strides[k];
    if (r.stride == 0) return relax::wrong(codes::wrong_attribute, "a stride of strided_slice is 0");
    const Expr& extent = (*x.shape)[r.axis];
    const Expr low = ir::int64(r.stride > 0 ? 0 : -1), high = r.stride > 0 ? extent : extent - 1;
    r.begin = clamped(begin[k], extent, low, high);
    const Expr stop = clamped(end[k], extent, low, high);
    const int64_t step = support::flip(ops_slice_step) ? 1 : std::abs(r.stride);
    const Expr span = r.stride > 0 ? stop - r.begin : r.begin - stop;
    r.extent = relax::non_negative(ir::floordiv(span + (step - 1), ir::int64(step)));
    ranges.push_back(std::move(r));
  }
  return ranges;
}

Result<StructInfo> infer_strided_slice(const InferContext& c) {
  const TensorStructInfo& x = *TRY(relax::tensor_argument(c, 0));
  if (!x.shape) return relax::tensor_info_of_rank(x.ndim, x.dtype);
  Shape shape = *x.shape;
  for (const AxisRange& range : TRY(ranges_of(c, x))) shape[range.axis] = range.extent;
  return relax::tensor_info(std::move(shape), x.dtype);
}

std::vector<Tensor> lower_strided_slice(const LowerContext& c) {
  const Tensor& x = c.tensor(0);
  const InferContext infer{strided_slice, c.call.args, c.attributes};
  const std::vector<AxisRange> ranges = ranges_of(infer, *infer.tensor(0)).value_or_throw();
  return {te::compute(
      *c.output().shape,
      [&](Indices i) {
        for (const AxisRange& range : ranges) i[range.axis] = range.begin + i[range.axis] * range.stride;
        return x(std::move(i));
      },
      {x}, "strided_slice")};
}

// x's shape with the axis replaced by the indices' shape.
Result<StructInfo> infer_take(const InferContext& c) {
  const TensorStructInfo& x = *TRY(relax::tensor_argument(c, 0));
  TRY(relax::check_dtype(c, 1, DTypeSet::integer));
  const TensorStructInfo& indices = *c.tensor(1);
  if (x.ndim < 0 || indices.ndim < 0) return relax::tensor_info_of_rank(-1, x.dtype);
  const int64_t axis = TRY(relax::normalize_axis(c, c.attrs<AxisAttributes>().axis, x.ndim));
  if (!x.shape || !indices.shape) return relax::tensor_info_of_rank(x.ndim - 1 + indices.ndim, x.dtype);
  const Expr& extent = (*x.shape)[static_cast<size_t>(axis)];
  if (ir::is_int(extent, 0) && !ir::is_int(ir::product(*indices.shape), 0))
    return relax::wrong(codes::shape_mismatch,
                        "take from axis " + std::to_string(axis) + " of " + relax::text_of(x) + ", which is empty");
  Shape shape(x.shape->begin(), x.shape->begin() + axis);
  shape.insert(shape.end(), indices.shape->begin(), indices.shape->end());
  shape.insert(shape.end(), x.shape->begin() + axis + 1, x.shape->end());
  return relax::tensor_info(std::move(shape), x.dtype);
}

std::vector<Tensor> lower_take(const LowerContext& c) {
  const Tensor &x = c.tensor(0), &indices = c.tensor(1);
  const int64_t given = c.attrs<AxisAttributes>().axis;
  const auto axis = static_cast<int64_t>(given < 0 ? given + static_cast<int64_t>(x.ndim()) : given);
  return {te::compute(
      *c.output().shape,
      [&](const Indices& i) {
        const auto middle = i.begin() + axis, rest = middle + static_cast<int64_t>(indices.ndim());
        const Expr& extent = x.shape()[static_cast<size_t>(axis)];
        Expr at = ir::cast(DType::int64(), indices(Indices(middle, rest)));
        if (indices.dtype().is_int()) at = ir::select(at < 0, at + extent, at);
        // An index outside is the user's mistake; it must not read foreign memory.
        at = ir::max(ir::min(at, extent - 1), ir::int64(0));
        Indices own(i.begin(), middle);
        own.push_back(at);
        own.insert(own.end(), rest, i.end());
        return x(std::move(own));
      },
      {x, indices}, "take")};
}

}  // namespace

const Operator strided_slice{
    .name = "strided_slice",
    .inputs = {{"x"}, {"begin", Input::required, Input::shape}, {"end", Input::required, Input::shape}},
    .attributes = relax::attributes_of<StridedSliceAttributes>(),
    .infer = infer_strided_slice,
    .meaning = relax::TeExpression(lower_strided_slice),
    .fusion = FusionKind::injective,
    .reference = "x[begin:end:strides] along axes",
};

// Negative indices count from the end; indices outside are clamped to the nearest inside.
const Operator take{
    .name = "take",
    .inputs = {{"x"}, {"indices"}},
    .attributes = relax::attributes_of<AxisAttributes>(),
    .infer = infer_take,
    .meaning = relax::TeExpression(lower_take),
    .fusion = FusionKind::injective,
    .reference = "numpy.take(x, indices, axis)",
};

}  // namespace lathe::ops
