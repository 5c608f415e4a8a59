// The diagnostics of type rules, the block builder, the verifier and the graph interpreter.
#pragma once

#include "support/diagnostic.h"

namespace lathe::relax::codes {

// Type rules.
inline constexpr support::Code wrong_arguments{"relax-wrong-arguments"};
inline constexpr support::Code wrong_attribute{"relax-wrong-attribute"};
inline constexpr support::Code dtype_not_supported{"relax-dtype-not-supported"};
inline constexpr support::Code dtype_mismatch{"relax-dtype-mismatch"};
inline constexpr support::Code cannot_broadcast{"relax-cannot-broadcast"};
inline constexpr support::Code wrong_rank{"relax-wrong-rank"};
inline constexpr support::Code shape_mismatch{"relax-shape-mismatch"};
inline constexpr support::Code axis_out_of_range{"relax-axis-out-of-range"};
// Verifier.
inline constexpr support::Code not_normal_form{"relax-not-normal-form"};
inline constexpr support::Code undefined_variable{"relax-undefined-variable"};
inline constexpr support::Code defined_twice{"relax-defined-twice"};
inline constexpr support::Code dataflow_escape{"relax-dataflow-escape"};
inline constexpr support::Code missing_struct_info{"relax-missing-struct-info"};
inline constexpr support::Code struct_info_differs{"relax-struct-info-differs"};
inline constexpr support::Code undefined_symbol{"relax-undefined-symbol"};
inline constexpr support::Code undefined_function{"relax-undefined-function"};
inline constexpr support::Code wrong_sizes{"relax-wrong-sizes"};  // told of a symbolic dimension
// Interpreter.
inline constexpr support::Code wrong_input{"relax-wrong-input"};
inline constexpr support::Code cannot_interpret{"relax-cannot-interpret"};

}  // namespace lathe::relax::codes
