// Checks a module of both IRs between the rows of the pipeline.
#pragma once

#include "ir/function.h"

namespace lathe::driver {
// What is wrong with the module after row `after_row`; empty when it is well formed.
support::Diagnostics verify_module(const ir::IRModule& module, const std::string& after_row);
}  // namespace lathe::driver
