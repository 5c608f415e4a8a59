// Groups operators that become one kernel: private functions with the attribute "primitive", called from where the
// operators stood.
//
// Two neighbouring groups merge when every use of the first's value is in the second and their kinds fit: elementwise,
// broadcasting and cheap injective operators with each other; the same before a reduction; elementwise operators of the
// same shape after a matrix product, convolution or reduction. One such anchor a group; at most `max_group` operators.
// A group whose only use is another group can never close a cycle with it.
#pragma once

#include "ir/pass.h"

namespace lathe::graph {

inline constexpr size_t max_group = 64;

support::Result<ir::IRModule> fuse_ops(ir::IRModule module, const ir::PassContext& context);

}  // namespace lathe::graph
