// Conversions of element types as ONNX has them: what becomes of numbers beyond a float8's range is the node's choice.
#pragma once

#include "interchange/onnx/node.h"

namespace lathe::onnx::operators {

struct Conversion {
  bool saturate = true;  // to the largest number of a float8, else to its infinity or NaN
  enum class Powers : uint8_t { up, down, nearest } powers = Powers::up;  // to float8e8m0, which has powers of two only
};
// The attributes `saturate` and `round_mode`, of the versions that have them.
Conversion read_conversion(NodeImport& c);

Expr converted(NodeImport& c, const Expr& x, DType to, const Conversion& how);

}  // namespace lathe::onnx::operators
