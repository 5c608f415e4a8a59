// The diagnostics of tensor expressions.
#pragma once

#include "support/diagnostic.h"

namespace lathe::te::codes {

inline constexpr support::Code nested_reduce{"te-nested-reduce"};
inline constexpr support::Code reduce_mismatch{"te-reduce-mismatch"};
inline constexpr support::Code not_an_input{"te-not-an-input"};

}  // namespace lathe::te::codes
