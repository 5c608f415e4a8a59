// Operators whose every output element is an input element elsewhere: permute_dims, broadcast_to, tile, nn.pad.
#include "ops/gradient/gradient.h"
#include "ops/rule.h"
#include "te/topi/pad.h"

namespace lathe::ops {

namespace {

// The permutation, axes non-negative.
Result<Axes> permutation(const InferContext& c, int64_t rank) {
  const auto& given = c.attrs<PermuteDimsAttributes>().axes;
  Axes axes;
  if (!given) {
    for (int64_t d = rank; d-- > 0;) axes.push_back(d);
    return axes;
  }
  for (const int64_t axis : *given) axes.push_back(TRY(relax::normalize_axis(c, axis, rank)));
  if (TRY(relax::normalize_axes(c, given, rank)).size() != static_cast<size_t>(rank))
    return relax::wrong(codes::wrong_attribute, "permute_dims of a tensor of rank " + std::to_string(rank) + " has " +
                                                    std::to_string(axes.size()) + " axes");
  return axes;
}

Result<StructInfo> infer_permute(const InferContext& c) {
  const TensorStructInfo& x = *TRY(relax::tensor_argument(c, 0));
  if (!x.shape) return c.args[0]->struct_info;
  Shape shape;
  for (const int64_t axis : TRY(permutation(c, x.ndim))) shape.push_back((*x.shape)[static_cast<size_t>(axis)]);
  return relax::tensor_info(std::move(shape), x.dtype);
}

std::vector<Tensor> lower_permute(const LowerContext& c) {
  const Tensor& x = c.tensor(0);
  const Axes axes = permutation(InferContext{permute_dims, c.call.args, c.attributes}, static_cast<int64_t>(x.ndim()))
                        .value_or_throw();
  return {te::compute(
      *c.output().shape,
      [&](const Indices& i) {
        Indices own(i.size());
        for (size_t d = 0; d < axes.size(); ++d) own[static_cast<size_t>(axes[d])] = i[d];
        return x(std::move(own));
      },
      {x}, "permute_dims")};
}

Result<StructInfo> infer_broadcast_to(const InferContext& c) {
  const TensorStructInfo& x = *TRY(relax::tensor_argument(c, 0));
  const Shape shape = TRY(relax::shape_argument(c, 1));
  if (x.shape && !relax::broadcasts_to(*x.shape, shape, c.assumptions))
    return relax::wrong(codes::cannot_broadcast,
                        "cannot broadcast " + relax::text_of(*x.shape) + " to " + relax::text_of(shape));
  return relax::tensor_info(shape, x.dtype);
}

std::vector<Tensor> lower_broadcast_to(const LowerContext& c) {
  return {te::topi::map({c.tensor(0)}, *c.output().shape, [](const Indices& v) { return v[0]; }, "broadcast_to")};
}

// Missing leading repeats, or dimensions, are 1.
Result<StructInfo> infer_tile(const InferContext& c) {
  const TensorStructInfo& x = *TRY(relax::tensor_argument(c, 0));
  const Shape repeats = TRY(relax::shape_argument(c, 1));
  if (!x.shape) return relax::tensor_info_of_rank(-1, x.dtype);
  Shape shape(std::max(x.shape->size(), repeats.size()), ir::int64(1));
  for (size_t d = 0; d < x.shape->size(); ++d) shape[shape.size() - 1 - d] = (*x.shape)[x.shape->size() - 1 - d];
  for (size_t d = 0; d < repeats.size(); ++d) {
    const Expr& repeat = repeats[repeats.size() - 1 - d];
    if (const auto count = ir::as_int(repeat); count && *count < 0)
      return relax::wrong(codes::wrong_attribute, "tile repeats a dimension " + std::to_string(*count) + " times");
    Expr& extent = shape[shape.size() - 1 - d];
    extent = relax::simplified(extent * repeat);
  }
  return relax::tensor_info(std::move(shape), x.dtype);
}

std::vector<Tensor> lower_tile(const LowerContext& c) {
  const Tensor& x = c.tensor(0);
  const Shape& shape = *c.output().shape;
  return {te::compute(
      shape,
      [&](const Indices& i) {
        Indices own;
        const size_t offset = shape.size() - x.ndim();
        for (size_t d = 0; d < x.ndim(); ++d) {
          const Expr& extent = x.shape()[d];
          const bool whole = relax::same_extent(extent, shape[offset + d]);
          own.push_back(whole ? i[offset + d] : ir::floormod(i[offset + d], extent));
        }
        return x(std::move(own));
      },
      {x}, "tile")};
}

// Negative pads crop.
Result<StructInfo> infer_pad(const InferContext& c) {
  const TensorStructInfo& x = *TRY(relax::tensor_argument(c, 0));
  const Shape before = TRY(relax::shape_argument(c, 1)), after = TRY(relax::shape_argument(c, 2));
  const std::string& mode = c.attrs<PadAttributes>().mode;
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    return relax::wrong(codes::wrong_attribute, "nn.pad has no mode '" + mode + "'");
  if (c.args.size() > 3 && c.args[3]) {
    TRY(relax::check_same_dtype(c, 0, 3));
    if (const auto* shape = c.tensor(3); shape->shape && !ir::is_int(ir::product(*shape->shape), 1))
      return relax::wrong(codes::wrong_rank, "the value of nn.pad is " + relax::text_of(*shape) + ", not a scalar");
  }
  if (x.ndim >= 0 && (before.size() != static_cast<size_t>(x.ndim) || after.size() != before.size()))
    return relax::wrong(codes::wrong_arguments, "nn.pad of " + relax::text_of(x) + " has " +
                                                    std::to_string(before.size()) + " leading and " +
                                                    std::to_string(after.size()) + " trailing pads");
  if (!x.shape) return c.args[0]->struct_info;
  Shape shape;
  for (size_t d = 0; d < before.size(); ++d) {
    const Expr extent = relax::simplified((*x.shape)[d] + before[d] + after[d]);
    if (const auto known = ir::as_int(extent); known && *known < 0)
      return relax::wrong(codes::shape_mismatch, "nn.pad crops more than dimension " + std::to_string(d) + " of " +
                                                     relax::text_of(x) + " has");
    if (mode != "constant" && ir::is_int((*x.shape)[d], 0) && !ir::is_int(extent, 0))
      return relax::wrong(codes::shape_mismatch, "nn.pad by '" + mode + "' of " + relax::text_of(x) + ": dimension " +
                                                     std::to_string(d) + " has no element to copy");
    shape.push_back(ir::as_int(extent) ? extent : relax::non_negative(extent));
  }
  return relax::tensor_info(std::move(shape), x.dtype);
}

std::vector<Tensor> lower_pad(const LowerContext& c) {
  const Tensor& x = c.tensor(0);
  const Shape& shape = *c.output().shape;
  const Shape& before = *c.call.args[1]->struct_info.as<relax::ShapeStructInfo>()->values;
  const std::string& mode = c.attrs<PadAttributes>().mode;
  if (mode == "constant") {
    const bool given = c.tensors.size() > 3 && c.tensors[3];
    const Expr value = given ? c.tensor(3)(Indices(c.tensor(3).ndim(), ir::int64(0))) : ir::constant(x.dtype(), 0);
    std::vector<Tensor> read;
    if (given) read.push_back(c.tensor(3));
    const Tensor padded = te::topi::pad_constant(x, before, shape, value, "pad", read);
    if (padded.buffer == x.buffer) return {te::topi::map(x, [](const Expr& v) { return v; }, "pad")};
    return {padded};
  }
  const auto kind = mode == "reflect" ? te::topi::PadMode::reflect
                    : mode == "edge"  ? te::topi::PadMode::edge
                                      : te::topi::PadMode::wrap;
  return {te::topi::pad_with_own(x, before, shape, kind, "pad")};
}

}  // namespace

const Operator permute_dims{
    .name = "permute_dims",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<PermuteDimsAttributes>(),
    .infer = infer_permute,
    .meaning = relax::TeExpression(lower_permute),
    .fusion = FusionKind::injective,
    .gradient = gradient_of_permute_dims,
    .reference = "numpy.transpose(x, axes)",
};

const Operator broadcast_to{
    .name = "broadcast_to",
    .inputs = {{"x"}, {"shape", Input::required, Input::shape}},
    .infer = infer_broadcast_to,
    .meaning = relax::TeExpression(lower_broadcast_to),
    .fusion = FusionKind::broadcast,
    .reference = "numpy.broadcast_to(x, shape)",
};

const Operator tile{
    .name = "tile",
    .inputs = {{"x"}, {"repeats", Input::required, Input::shape}},
    .infer = infer_tile,
    .meaning = relax::TeExpression(lower_tile),
    .fusion = FusionKind::injective,
    .reference = "numpy.tile(x, repeats)",
};

// `before` and `after` are given for every dimension; `value` (0 where absent) counts in mode "constant".
const Operator pad{
    .name = "nn.pad",
    .inputs = {{"x"},
               {"before", Input::required, Input::shape},
               {"after", Input::required, Input::shape},
               {"value", Input::optional}},
    .attributes = relax::attributes_of<PadAttributes>(),
    .infer = infer_pad,
    .meaning = relax::TeExpression(lower_pad),
    .fusion = FusionKind::injective,
    .reference = "numpy.pad(x, list(zip(before, after)), mode)",
};

}  // namespace lathe::ops
