// What the option `winograd` came to in a compiled module: one sentence for people, and rows for the metadata.
#pragma once

#include "driver/compile.h"

namespace lathe::driver {

// Empty where it was not asked for.
std::string winograd_summary(const ir::IRModule& module);

}  // namespace lathe::driver
