#include "interchange/onnx/types.h"

#include "onnx_schema.pb.h"

namespace lathe::onnx {

std::optional<schema::TypeProto> type_of(const relax::StructInfo& info) {
  schema::TypeProto type;
  if (const auto* sequence = info.as<relax::SequenceStructInfo>()) {
    auto element = type_of(sequence->element);
    if (!element) return std::nullopt;
    *type.mutable_sequence_type()->mutable_elem_type() = std::move(*element);
    return type;
  }
  if (const auto* optional = info.as<relax::OptionalStructInfo>()) {
    auto element = type_of(optional->element);
    if (!element) return std::nullopt;
    *type.mutable_optional_type()->mutable_elem_type() = std::move(*element);
    return type;
  }
  const auto* tensor = info.as<relax::TensorStructInfo>();
  if (!tensor || element_number(tensor->dtype) == 0) return std::nullopt;
  auto& made = *type.mutable_tensor_type();
  made.set_elem_type(element_number(tensor->dtype));
  if (tensor->ndim < 0) return type;
  made.mutable_shape();
  for (int64_t d = 0; d < tensor->ndim; ++d) {
    auto& dim = *made.mutable_shape()->add_dim();
    const ir::Expr extent = tensor->shape ? tensor->shape->at(static_cast<size_t>(d)) : ir::Expr();
    if (const auto known = extent ? ir::as_int(extent) : std::nullopt)
      dim.set_dim_value(*known);
    else if (const auto* symbol = extent ? extent.as<ir::VarNode>() : nullptr)
      dim.set_dim_param(symbol->name);
  }
  return type;
}

}  // namespace lathe::onnx
