// Drops bindings whose value nobody uses. Pure values only: impure calls stay.
#pragma once

#include "ir/pass.h"

namespace lathe::graph {
support::Result<ir::IRModule> eliminate_dead_code(ir::IRModule module, const ir::PassContext& context);
}
