// Names of the model's nodes.
#pragma once

#include "ir/node.h"

namespace lathe::ir {

// The name of the model node that `node` was made for, by which errors and profiles name it; "" where it has no origin.
std::string node_name(const NodeRef& node);

}  // namespace lathe::ir
