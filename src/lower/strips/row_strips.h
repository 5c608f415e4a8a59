// Kernels that read and write more than a core's own caches hold are run a strip of rows after the other, so that each
// kernel finds there what the one before it left.
#pragma once

#include "ir/pass.h"
#include "lower/strips/strip_model.h"

namespace lathe::lower {

// Splits runs of kernels, in legalized functions, into strips of rows (indices of the first axis that is longer than
// one: of an image that is alone in its batch, its rows), where the model in strip_model.h sees bytes saved. Rows that
// two strips need (around a convolution's window) are copied from the one to the other. Results that are
// needed behind the run are written where they belong.
support::Result<ir::IRModule> row_strips(ir::IRModule module, const target::Target& target,
                                         const ir::PassContext& context);
support::Result<ir::IRModule> row_strips(ir::IRModule module, const target::Target& target,
                                         const ir::PassContext& context, const StripCosts& costs);

}  // namespace lathe::lower
