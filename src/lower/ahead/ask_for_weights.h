// Weights that a kernel would wait for are asked for while the kernels before it compute.
#pragma once

#include "ir/pass.h"
#include "target/target.h"

namespace lathe::lower {

// A kernel that does little with each byte of its weights (a classifier behind a convolutional network, which
// multiplies one row) takes as long as memory takes to give them. Kernels before it that compute much for each byte
// leave memory idle: they get the weights as an operand more, of which they ask for a part with each turn of their sums
// (T.prefetch), so that it lies in the shared cache when it is needed. No more is asked for than half of that cache,
// and nothing across kernels that read as much themselves.
//
// A kernel that others call, too, gets a copy for this call, whose attribute `scheduled_as` is the kernel's name.
inline constexpr const char* scheduled_as = "scheduled_as";

// `least`: bytes of weights for which it is worth it.
support::Result<ir::IRModule> ask_for_weights(ir::IRModule module, const target::Target& target,
                                              const ir::PassContext& context, int64_t least);
support::Result<ir::IRModule> ask_for_weights(ir::IRModule module, const target::Target& target,
                                              const ir::PassContext& context);

}  // namespace lathe::lower
