// The code of a gradient that there is none of.
#pragma once

#include "support/diagnostic.h"

namespace lathe::ops::gradient::codes {

inline constexpr support::Code no_gradient{"ops-no-gradient"};  // of an operator on the way

}  // namespace lathe::ops::gradient::codes
