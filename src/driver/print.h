// The text of a whole module: both dialects in one script.
#pragma once

#include "ir/function.h"

namespace lathe::driver {
std::string print(const ir::IRModule& module);
// A function as a script by itself under `name`; any other node as the text that stands for it in one.
std::string print_node(const ir::NodeRef& node, const std::string& name = "main");
}  // namespace lathe::driver
