// Computing with known integers: what the tables' `fold` functions share. A fold gives false where the result could
// not be known, and the node is then converted as a tensor.
#pragma once

#include "interchange/onnx/node.h"

namespace lathe::onnx {

using IntegerFunction = std::function<std::optional<ir::Expr>(std::span<const ir::Expr>)>;

// Element by element over all inputs, broadcast. `result` void: the first input's type.
bool fold_elementwise(NodeImport& c, DType result, const IntegerFunction& f);

// Row-major strides; the count of elements.
std::vector<int64_t> row_major(const std::vector<int64_t>& dims);
int64_t element_count(const std::vector<int64_t>& dims);

// Truncating division, where it can be expressed; by what is not 0.
std::optional<ir::Expr> divide(const ir::Expr& a, const ir::Expr& b, const SymbolBounds& bounds);

relax::Expr shape_expr(Integers values);

}  // namespace lathe::onnx
