// The diagnostic codes of this room.
#pragma once

#include "support/diagnostic.h"

namespace lathe::arith::code {

// An index that is no split or fusion of the loop variables, with the reason why not.
inline constexpr support::Code not_affine{"arith-not-affine"};
// A map whose inverse is asked for, and that forgets a part of some loop variable.
inline constexpr support::Code not_injective{"arith-not-injective"};

}  // namespace lathe::arith::code
