// Whether a module's graph functions are well formed.
#pragma once

#include "relax/expr.h"

namespace lathe::relax {

// Everything wrong: operands are leaves (A-normal form), variables are defined once and before their uses, dataflow
// variables stay in their block, struct info is there and follows from the operators' rules, symbolic dimensions are
// bound by a parameter or a match_cast, called functions exist.
support::Diagnostics verify(const ir::IRModule& module);

}  // namespace lathe::relax
