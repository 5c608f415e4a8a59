// From operators to loops: every fused group (a private function with the attribute "primitive") and every single
// operator becomes one PrimFunc through the operators' own meanings, called by call_tir. Equal functions are shared.
// Views (reshape and the like) stay: they are no computation.
#pragma once

#include "ir/pass.h"

namespace lathe::lower {

support::Result<ir::IRModule> legalize(ir::IRModule module, const ir::PassContext& context);

}  // namespace lathe::lower
