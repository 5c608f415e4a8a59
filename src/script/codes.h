// The diagnostics of reading scripts.
#pragma once

#include "support/diagnostic.h"

namespace lathe::script::codes {

using support::Code;

inline constexpr Code syntax{"script-syntax"};                      // no Python
inline constexpr Code not_in_scripts{"script-not-in-scripts"};      // Python that scripts have no meaning for
inline constexpr Code too_deep{"script-too-deep"};                  // nesting
inline constexpr Code number_too_large{"script-number-too-large"};  // a literal or constant result beyond 64 bits
inline constexpr Code version{"script-version"};                    // written by a newer Lathe
inline constexpr Code unknown_name{"script-unknown-name"};
inline constexpr Code unknown_function{"script-unknown-function"};  // T.something that does not exist
inline constexpr Code needs_python{"script-needs-python"};          // a construct that Python must evaluate
inline constexpr Code wrong_arguments{"script-wrong-arguments"};
inline constexpr Code wrong_type{"script-wrong-type"};  // a value of another type is needed
inline constexpr Code dtype_mismatch{"script-dtype-mismatch"};
inline constexpr Code misplaced{"script-misplaced"};  // a statement where it has no meaning
inline constexpr Code defined_twice{"script-defined-twice"};
inline constexpr Code annotation_differs{"script-annotation-differs"};
inline constexpr Code missing_constant{"script-missing-constant"};  // data that is not in the side file
inline constexpr Code no_function{"script-no-function"};            // nothing to parse in the text

}  // namespace lathe::script::codes
