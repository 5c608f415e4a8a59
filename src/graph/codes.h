// The codes of graph's diagnostics.
#pragma once

#include "support/diagnostic.h"

namespace lathe::graph::codes {

// gradient
inline constexpr support::Code gradient_request{"graph-gradient-request"};  // no such function, parameter or target

}  // namespace lathe::graph::codes
