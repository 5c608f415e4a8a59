// Activations of convolutions, and of what lies between them, with the channels last: vectors run along channels, which
// weights, biases and depthwise kernels share, and a pixel's channels lie in one cache line. A pointwise convolution
// becomes a product of [batch, pixels, channels] with a matrix. Whatever else reads such a value, or the result, gets
// it back in the model's order; inputs are converted where they are first needed.
#pragma once

#include "ir/pass.h"
#include "target/target.h"

namespace lathe::graph {
support::Result<ir::IRModule> convert_layout(ir::IRModule module, const target::Target& target,
                                             const ir::PassContext& context);
}
