// The diagnostics of tensor expressions.
#pragma once

#include "support/diagnostic.h"

namespace lathe::te::codes {

inline constexpr support::Code nested_reduce{"te-nested-reduce"};
inline constexpr support::Code reduce_mismatch{"te-reduce-mismatch"};
inline constexpr support::Code not_an_input{"te-not-an-input"};
inline constexpr support::Code not_loops{"te-not-loops"};    // Python that is no loops over arrays
inline constexpr support::Code unassigned{"te-unassigned"};  // a variable that may be read before it has a value
inline constexpr support::Code unbounded_loop{"te-unbounded-loop"};  // bounds that change beyond what can be bounded
inline constexpr support::Code parameters{"te-parameters"};          // what is said of parameters does not fit them

inline constexpr support::Code scan{"te-scan"};      // a recurrence that does not run step by step
inline constexpr support::Code einsum{"te-einsum"};  // subscripts that do not fit the operands
inline constexpr support::Code shapes{"te-shapes"};  // shapes that an operator does not take

}  // namespace lathe::te::codes
