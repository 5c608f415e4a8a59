// Batch normalisation in inference is a scale and a shift per channel: folded into the weights and bias of the
// convolution before it where nobody else uses that convolution's value and its weights are constant; elsewhere it
// becomes a multiplication and an addition whose operands constant folding computes.
#pragma once

#include "ir/pass.h"

namespace lathe::graph {
support::Result<ir::IRModule> fold_batch_norm(ir::IRModule module, const ir::PassContext& context);
}
