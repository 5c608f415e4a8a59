// Types of values as ONNX declares them.
#pragma once

#include "interchange/onnx/read/model.h"
#include "relax/expr.h"

namespace lathe::onnx {

// The type of a tensor, sequence or optional of it; an extent that is a symbol has its name, another has none. Nothing
// for what ONNX has no type for.
std::optional<schema::TypeProto> type_of(const relax::StructInfo& info);

}  // namespace lathe::onnx
