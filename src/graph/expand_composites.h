// Replaces operators that mean other operators (decision 6, meaning 3) by what they mean.
#pragma once

#include "ir/pass.h"

namespace lathe::graph {
support::Result<ir::IRModule> expand_composites(ir::IRModule module, const ir::PassContext& context);
}
