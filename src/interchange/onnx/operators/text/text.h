// Strings and numbers as one another.
#pragma once

#include "interchange/onnx/node.h"

namespace lathe::onnx::operators {

Expr as_text(NodeImport& c, const Expr& numbers);
Expr as_number(NodeImport& c, const Expr& texts, DType dtype);

}  // namespace lathe::onnx::operators
