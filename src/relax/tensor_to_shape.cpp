#include "relax/tensor_to_shape.h"

#include "relax/infer.h"

namespace lathe::relax {

namespace {

Result<StructInfo> infer_tensor_to_shape(const InferContext& c) {
  const TensorStructInfo& x = *TRY(tensor_argument(c, 0));
  if (x.dtype != DType::int64() && x.dtype != DType::int32())
    return wrong(codes::dtype_not_supported, "tensor_to_shape takes int32 or int64 tensors, not " + x.dtype.str());
  const auto shape = x.shape ? constant_shape(*x.shape) : std::nullopt;
  if (!shape) return wrong(codes::wrong_arguments, "tensor_to_shape of " + text_of(x) + ", whose size is not known");
  int64_t count = 1;
  for (const int64_t extent : *shape) count *= extent;
  return StructInfo(make<ShapeStructInfo>(OptionalShape{}, count));
}

}  // namespace

const Operator tensor_to_shape_operator{
    .name = "tensor_to_shape",
    .inputs = {{"x"}},
    .infer = infer_tensor_to_shape,
    .meaning = RuntimeKernel{"tensor_to_shape"},
    .reference = "tuple(x.flatten())",
};

bool is_tensor_to_shape(const Expr& e) {
  const auto* call = e.as<Call>();
  return call && callee_operator(*call) == &tensor_to_shape_operator;
}

}  // namespace lathe::relax
