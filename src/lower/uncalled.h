// Kernels that others took the place of.
#pragma once

#include <set>

#include "ir/function.h"

namespace lathe::lower {

// Takes those of `names` out of the module that nothing in it calls.
void drop_uncalled(ir::IRModule& module, const std::set<std::string>& names);

}  // namespace lathe::lower
