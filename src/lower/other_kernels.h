// Kernels that take the place of others.
#pragma once

#include <set>

#include "tir/stmt.h"

namespace lathe::lower {

// Adds a kernel under a name like `hint`, which it gives.
std::string add_kernel(ir::IRModule& module, const tir::Function& kernel, const std::string& hint);

// Takes those of `names` out of the module that nothing in it calls, and with them their versions
// (lower/legalize/versions.h).
void drop_uncalled(ir::IRModule& module, const std::set<std::string>& names);

}  // namespace lathe::lower
