// The text of a whole module: both dialects in one script.
#pragma once

#include "ir/function.h"
#include "script/options.h"

namespace lathe::driver {
std::string print(const ir::IRModule& module, const script::PrintOptions& options = {});
// A function as a script by itself under `name`; any other node as the text that stands for it in one.
std::string print_node(const ir::NodeRef& node, const std::string& name = "main",
                       const script::PrintOptions& options = {});
}  // namespace lathe::driver
