// tensor_to_shape: the integers of a tensor as a shape, read when the model runs. A match_cast of its result to a shape
// of fresh variables gives them names, which shapes and tensor programs may then use.
#pragma once

#include "relax/operator.h"

namespace lathe::relax {

// Of an int32 or int64 tensor of known shape; row-major. Lowering and the interpreter know this row: no loops compute
// it.
extern const Operator tensor_to_shape_operator;

bool is_tensor_to_shape(const Expr& e);

}  // namespace lathe::relax
