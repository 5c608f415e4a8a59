// Checks a whole module: what ir::run_passes asks before the first row and after each.
#pragma once

#include "ir/pass.h"

namespace lathe::driver {

// What is wrong with the graph functions and the tensor functions of a module on which these rows have run; empty when
// it is well formed.
support::Diagnostics verify_module(const ir::IRModule& module, const ir::RowsRun& rows);

// A program that is written to a file calls no function that is registered in this process.
support::Status nothing_registered(const ir::IRModule& module);

}  // namespace lathe::driver
