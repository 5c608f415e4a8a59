// The diagnostic codes of this room.
#pragma once

#include "support/diagnostic.h"

namespace lathe::schedule::codes {

using support::Code;

inline constexpr Code no_function{"schedule-no-function"};          // the module has no such tensor function
inline constexpr Code no_block{"schedule-no-block"};                // no block, or several, of that name
inline constexpr Code gone{"schedule-gone"};                        // a handle whose loop or block no longer exists
inline constexpr Code bad_argument{"schedule-bad-argument"};        // an argument no program could make right
inline constexpr Code not_nested{"schedule-not-nested"};            // loops that are not one nest
inline constexpr Code loop_kind{"schedule-loop-kind"};              // the loop is already parallel, vectorized, …
inline constexpr Code dependence{"schedule-dependence"};            // a dependence forbids it, or could not be excluded
inline constexpr Code not_inlinable{"schedule-not-inlinable"};      // the block's value cannot stand for its buffer
inline constexpr Code region{"schedule-region"};                    // a region is not covered, or not exact
inline constexpr Code access{"schedule-access"};                    // declared reads or writes do not cover the body
inline constexpr Code intrin_mismatch{"schedule-intrin-mismatch"};  // a block is not what an intrinsic describes
inline constexpr Code trace{"schedule-trace"};                      // a trace that cannot be read or replayed

}  // namespace lathe::schedule::codes
