// Extents that are computed from symbols.
#pragma once

#include "ir/pass.h"

namespace lathe::lower {

// An extent that a kernel knows as an expression, as (h + 15) // 16, becomes a scalar of its own, which the calls
// compute: the schedule rules' proofs are about one variable then, and kernels that differ in such extents alone are
// one. What an expression shares with the rest of the kernel, as the factors of a product by which it indexes, stays.
support::Result<ir::IRModule> name_extents(ir::IRModule module, const ir::PassContext& context);

}  // namespace lathe::lower
