// What is said of two extents that type rules took for equal and that are not when the model runs.
#pragma once

#include "relax/assert_op.h"

namespace lathe::relax {

// "the shapes do not fit: b_1 is 4, it must be 1 or a_1, which is 3". `expected` may be a choice between 1 and what
// `actual` broadcasts to.
Message mismatch(const ir::Expr& actual, const ir::Expr& expected);

}  // namespace lathe::relax
