// The diagnostics of targets.
#pragma once

#include "support/diagnostic.h"

namespace lathe::target::codes {

inline constexpr support::Code unknown_target{"target-unknown"};
inline constexpr support::Code bad_option{"target-bad-option"};
inline constexpr support::Code bad_file{"target-bad-file"};
inline constexpr support::Code unknown_key{"target-unknown-key"};

}  // namespace lathe::target::codes
