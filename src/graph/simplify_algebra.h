// Algebraic canonicalisation: identities that hold for IEEE floats and wrapping integers alike, chains of views and
// permutations merged, operators that do nothing removed.
#pragma once

#include "ir/pass.h"

namespace lathe::graph {
support::Result<ir::IRModule> simplify_algebra(ir::IRModule module, const ir::PassContext& context);
}
