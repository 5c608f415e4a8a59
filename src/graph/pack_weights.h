// Constant weights of convolutions and matrix products take the layout that the loops want: columns (output channels)
// in panels of a few vectors, zero-padded. The packing is an ordinary operator, which constant folding evaluates.
#pragma once

#include "ir/pass.h"
#include "target/target.h"

namespace lathe::graph {
support::Result<ir::IRModule> pack_weights(ir::IRModule module, const target::Target& target,
                                           const ir::PassContext& context);
}
