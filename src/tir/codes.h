// The codes of tir's diagnostics.
#pragma once

#include "support/diagnostic.h"

namespace lathe::tir::codes {

using support::Code;

// interpret
inline constexpr Code argument_mismatch{"tir-argument-mismatch"};
inline constexpr Code out_of_bounds{"tir-out-of-bounds"};
inline constexpr Code uninitialised_read{"tir-uninitialised-read"};
inline constexpr Code division_by_zero{"tir-division-by-zero"};
inline constexpr Code assertion_failed{"tir-assertion-failed"};
inline constexpr Code raised{"tir-raised"};
inline constexpr Code step_budget{"tir-step-budget"};
inline constexpr Code not_interpretable{"tir-not-interpretable"};

// verify
inline constexpr Code undefined_variable{"tir-undefined-variable"};
inline constexpr Code redefinition{"tir-redefinition"};
inline constexpr Code dtype_mismatch{"tir-dtype-mismatch"};
inline constexpr Code index_not_integer{"tir-index-not-integer"};
inline constexpr Code rank_mismatch{"tir-rank-mismatch"};
inline constexpr Code binding_count{"tir-binding-count"};
inline constexpr Code region_not_covered{"tir-region-not-covered"};
inline constexpr Code illegal_after_stage{"tir-illegal-after-stage"};
inline constexpr Code register_index{"tir-register-index"};
inline constexpr Code wrong_loop_exit{"tir-wrong-loop-exit"};  // no loop around, or one that cannot be left
inline constexpr Code missing_field{"tir-missing-field"};

inline constexpr Code wrong_call{"tir-wrong-call"};  // of a function of the module, or of a registered one

// An access that some iteration is shown to make outside of its buffer, before the program runs.
inline constexpr Code access_out_of_bounds{"tir-access-out-of-bounds"};

// passes
inline constexpr Code vectorized_reduction{"tir-vectorized-reduction"};
inline constexpr Code match_buffer_rank{"tir-match-buffer-rank"};

inline constexpr Code no_gradient{"tir-no-gradient"};  // a program, or a function in it, that no gradient is made of

inline constexpr Code tensor_intrin{"tir-tensor-intrin"};  // two functions that make no intrinsic, or no such name

inline constexpr Code no_numpy{"tir-no-numpy"};  // a program that has no form as loops over NumPy arrays

inline constexpr Code layout{"tir-layout"};  // a text that is no layout, or what does not fit one

}  // namespace lathe::tir::codes
