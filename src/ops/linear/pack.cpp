// Packing of weights into the layouts that nn.conv ("OHWI{n}o") and matmul ("NK{n}n") read fastest: n output channels
// or columns side by side, zeros past the last. Evaluated once, by constant folding.
#include "ops/rule.h"

namespace lathe::ops {

namespace {

Result<Expr> tiles_of(const InferContext& c, const Expr& extent) {
  const int64_t lanes = c.attrs<PackAttributes>().lanes;
  if (lanes < 1)
    return relax::wrong(codes::wrong_attribute, std::string(c.op.name) + " has " + std::to_string(lanes) + " lanes");
  return relax::simplified(ir::ceildiv(extent, ir::int64(lanes)));
}

support::Status check_rank(const InferContext& c, const TensorStructInfo& x, size_t low, size_t high) {
  if (x.shape && x.shape->size() >= low && x.shape->size() <= high) return support::success();
  return relax::wrong(codes::wrong_rank, std::string(c.op.name) + " cannot pack " + relax::text_of(x));
}

// [O, I, spatial…] to [ceil(O / n), spatial…, I, n]
Result<StructInfo> infer_pack_kernel(const InferContext& c) {
  const TensorStructInfo& x = *TRY(relax::tensor_argument(c, 0));
  TRY(check_rank(c, x, 3, 16));
  Shape shape{TRY(tiles_of(c, (*x.shape)[0]))};
  shape.insert(shape.end(), x.shape->begin() + 2, x.shape->end());
  shape.push_back((*x.shape)[1]);
  shape.push_back(ir::int64(c.attrs<PackAttributes>().lanes));
  return relax::tensor_info(std::move(shape), x.dtype);
}

std::vector<Tensor> lower_pack_kernel(const LowerContext& c) {
  const Tensor& x = c.tensor(0);
  return {te::compute(
      *c.output().shape,
      [&](const Indices& i) {
        const Expr channel = i[0] * c.attrs<PackAttributes>().lanes + i.back();
        Indices own{channel, i[i.size() - 2]};
        own.insert(own.end(), i.begin() + 1, i.end() - 2);
        return ir::if_then_else(channel < x.shape()[0], x(std::move(own)), ir::constant(x.dtype(), 0));
      },
      {x}, "pack_kernel")};
}

// [batch…, K, N] to [batch…, ceil(N / n), K, n]
Result<StructInfo> infer_pack_matrix(const InferContext& c) {
  const TensorStructInfo& x = *TRY(relax::tensor_argument(c, 0));
  TRY(check_rank(c, x, 2, 16));
  Shape shape(x.shape->begin(), x.shape->end() - 2);
  shape.push_back(TRY(tiles_of(c, x.shape->back())));
  shape.push_back((*x.shape)[x.shape->size() - 2]);
  shape.push_back(ir::int64(c.attrs<PackAttributes>().lanes));
  return relax::tensor_info(std::move(shape), x.dtype);
}

std::vector<Tensor> lower_pack_matrix(const LowerContext& c) {
  const Tensor& x = c.tensor(0);
  return {te::compute(
      *c.output().shape,
      [&](const Indices& i) {
        const size_t batch = i.size() - 3;
        const Expr column = i[batch] * c.attrs<PackAttributes>().lanes + i.back();
        Indices own(i.begin(), i.begin() + static_cast<ptrdiff_t>(batch));
        own.push_back(i[batch + 1]);
        own.push_back(column);
        return ir::if_then_else(column < x.shape().back(), x(std::move(own)), ir::constant(x.dtype(), 0));
      },
      {x}, "pack_matrix")};
}

}  // namespace

const Operator pack_kernel{
    .name = "nn.pack_kernel",
    .inputs = {{"kernel"}},
    .attributes = relax::attributes_of<PackAttributes>(),
    .infer = infer_pack_kernel,
    .meaning = relax::TeExpression(lower_pack_kernel),
    .fusion = FusionKind::injective,
    .reference = "numpy.moveaxis(padded(kernel).reshape(O // n, n, I, -1), (2, 1), (-2, -1))",
};

const Operator pack_matrix{
    .name = "nn.pack_matrix",
    .inputs = {{"b"}},
    .attributes = relax::attributes_of<PackAttributes>(),
    .infer = infer_pack_matrix,
    .meaning = relax::TeExpression(lower_pack_matrix),
    .fusion = FusionKind::injective,
    .reference = "numpy.moveaxis(padded(b).reshape(..., K, N // n, n), -2, -3)",
};

}  // namespace lathe::ops
