// The diagnostic codes of this room.
#pragma once

#include "support/diagnostic.h"

namespace lathe::ir::codes {

using support::Code;

inline constexpr Code too_deep{"ir-too-deep"};                  // nesting beyond the bound
inline constexpr Code dtype_mismatch{"ir-dtype-mismatch"};      // operands of different or unfit dtypes
inline constexpr Code field{"ir-field"};                        // a field of a node given what it cannot hold
inline constexpr Code evaluation_limit{"ir-evaluation-limit"};  // constants that take too much to compute
inline constexpr Code cancelled{"ir-cancelled"};                // stopped by the user

}  // namespace lathe::ir::codes
