// The two operands of an elementwise operator, aligned for NumPy's broadcasting.
#pragma once

#include "interchange/onnx/node.h"

namespace lathe::onnx::operators {

// Before opset 7 the attribute `axis` says where the second operand's dimensions begin in the first's; since then they
// are aligned at the end.
std::pair<Expr, Expr> broadcast_operands(NodeImport& c);

// `x`, whose dimensions are the first's from `axis` on, with trailing ones.
Expr aligned_at(NodeImport& c, const Expr& x, int64_t axis, int64_t rank);

}  // namespace lathe::onnx::operators
