// Concatenations without copies: what is put together is computed where it belongs.
#pragma once

#include "ir/pass.h"

namespace lathe::lower {

// In legalized functions, kernels whose results are concatenated write them into the whole, and whoever reads a part
// reads it there. A part that cannot be written in place (a parameter, a constant, a result) is copied as before. Parts
// lie in rows, whose number may be known to the run alone: of each row of the whole, a part has the same columns.
support::Result<ir::IRModule> parts_in_place(ir::IRModule module, const ir::PassContext& context);

}  // namespace lathe::lower
