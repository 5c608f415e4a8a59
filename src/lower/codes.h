// The diagnostic codes of this room.
#pragma once

#include "support/diagnostic.h"

namespace lathe::lower::codes {

using support::Code;

inline constexpr Code no_loops{"lower-no-loops"};                    // an operator that cannot become loops
inline constexpr Code unbound_dimension{"lower-unbound-dimension"};  // a size that no input tells
inline constexpr Code shape_arithmetic{
    "lower-shape-arithmetic"};                           // arithmetic over sizes that the register program lacks
inline constexpr Code wrong_state{"lower-wrong-state"};  // an input and an output that are no state of the model
inline constexpr Code program{"lower-program"};          // what the register program cannot hold

}  // namespace lathe::lower::codes
