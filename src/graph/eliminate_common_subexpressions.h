// Computes equal values once: the second of two equal pure calls becomes the first's variable.
#pragma once

#include "ir/pass.h"

namespace lathe::graph {
support::Result<ir::IRModule> eliminate_common_subexpressions(ir::IRModule module, const ir::PassContext& context);
}
