// Mathematical functions as expressions of arithmetic, selects and bit operations: one definition for every backend,
// and no call of a library. Each file says its method, its error and what it gives for infinities, NaN and -0.
#pragma once

#include "ir/build.h"

namespace lathe::codegen::math {

// The call written out, or null where a backend has the operation itself. Vectors stay vectors.
ir::Expr expand(const ir::Call& call);

}  // namespace lathe::codegen::math
