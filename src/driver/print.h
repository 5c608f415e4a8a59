// The text of a whole module: both dialects in one script.
#pragma once

#include "ir/function.h"

namespace lathe::driver {
std::string print(const ir::IRModule& module);
}
