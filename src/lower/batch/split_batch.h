// A batch whose values are larger than the caches is run in pieces: a few images go through many kernels, and then the
// next ones, so that a kernel finds in a near cache what the one before it left there.
#pragma once

#include "ir/pass.h"
#include "target/target.h"

namespace lathe::lower {

// Splits runs of kernels, in legalized functions, that compute each image of a batch (each index of the first axis)
// from that image alone. Where a run ends, and into how many pieces it goes, says the model in batch_model.h. The
// kernels are those of a smaller batch; parts of tensors are views, and results are written where they belong.
support::Result<ir::IRModule> split_batch(ir::IRModule module, const target::Target& target,
                                          const ir::PassContext& context);

}  // namespace lathe::lower
