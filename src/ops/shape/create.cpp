// Tensors made from shapes and scalars: shape_of, shape_to_tensor, full.
#include "ops/rule.h"
#include "relax/block_builder.h"

namespace lathe::ops {

namespace {

Result<StructInfo> infer_shape_of(const InferContext& c) {
  const TensorStructInfo& x = *TRY(relax::tensor_argument(c, 0));
  return StructInfo(ir::make<relax::ShapeStructInfo>(x.shape, x.ndim));
}

Result<relax::Expr> expand_shape_of(relax::BlockBuilder&, const relax::Call& call) {
  const TensorStructInfo* x = relax::as_tensor(call.args[0]);
  if (!x || !x->shape) return relax::wrong(codes::wrong_arguments, "the shape of a tensor of unknown shape is asked");
  return relax::Expr(ir::make<relax::ShapeExpr>(*x->shape));
}

Result<StructInfo> infer_shape_to_tensor(const InferContext& c) {
  const Shape values = TRY(relax::shape_argument(c, 0));
  return relax::tensor_info({static_cast<int64_t>(values.size())}, DType::int64());
}

std::vector<Tensor> lower_shape_to_tensor(const LowerContext& c) {
  const Shape& values = *c.call.args[0]->struct_info.as<relax::ShapeStructInfo>()->values;
  return {te::compute(
      *c.output().shape,
      [&](const Indices& i) {
        Expr value = values.empty() ? ir::int64(0) : values.back();
        for (size_t d = values.size(); d-- > 1;)
          value = ir::select(ir::eq(i[0], ir::int64(static_cast<int64_t>(d) - 1)), values[d - 1], value);
        return value;
      },
      {}, "shape_to_tensor")};
}

Result<StructInfo> infer_full(const InferContext& c) {
  const Shape shape = TRY(relax::shape_argument(c, 0));
  const TensorStructInfo& value = *TRY(relax::tensor_argument(c, 1));
  if (value.shape && !ir::is_int(ir::product(*value.shape), 1))
    return relax::wrong(codes::wrong_rank, "the value of full is " + relax::text_of(value) + ", not a scalar");
  for (const Expr& extent : shape)
    if (const auto known = ir::as_int(extent); known && *known < 0)
      return relax::wrong(codes::shape_mismatch, "full of shape " + relax::text_of(shape));
  return relax::tensor_info(shape, value.dtype);
}

std::vector<Tensor> lower_full(const LowerContext& c) {
  const Tensor& value = c.tensor(1);
  return {te::compute(
      *c.output().shape, [&](const Indices&) { return value(Indices(value.ndim(), ir::int64(0))); }, {value}, "full")};
}

}  // namespace

// The shape as a value of relax; shape_to_tensor makes an int64 tensor of it.
const Operator shape_of{
    .name = "shape_of",
    .inputs = {{"x"}},
    .infer = infer_shape_of,
    .meaning = relax::Composite(expand_shape_of),
    .reference = "x.shape",
};

const Operator shape_to_tensor{
    .name = "shape_to_tensor",
    .inputs = {{"shape", Input::required, Input::shape}},
    .infer = infer_shape_to_tensor,
    .meaning = relax::TeExpression(lower_shape_to_tensor),
    .fusion = FusionKind::injective,
    .reference = "numpy.array(shape, dtype='int64')",
};

// Every element the scalar `value`.
const Operator full{
    .name = "full",
    .inputs = {{"shape", Input::required, Input::shape}, {"value"}},
    .infer = infer_full,
    .meaning = relax::TeExpression(lower_full),
    .fusion = FusionKind::injective,
    .reference = "numpy.full(shape, value)",
};

}  // namespace lathe::ops
