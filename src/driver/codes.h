// The diagnostic codes of this room.
#pragma once

#include "support/diagnostic.h"

namespace lathe::driver::codes {

using support::Code;

inline constexpr Code script_file{"driver-script-file"};    // a script that cannot be read or written
inline constexpr Code unknown_pass{"driver-unknown-pass"};  // an option names a pass that the pipeline has not
inline constexpr Code runtime{"runtime-failed"};            // the runtime refused, with what it says
inline constexpr Code cannot_write{"driver-cannot-write"};  // an output that cannot be written
inline constexpr Code no_code{"driver-no-code"};            // the target gives no code of that form
inline constexpr Code unknown_form{"driver-unknown-form"};  // no form of output has this name or extension
inline constexpr Code verify_unknown_shape{
    "verify-unknown-shape"};  // a symbol without a value, so there are no inputs to compare with
inline constexpr Code script_dims{"driver-script-dims"};  // dimensions are fixed for a model, not for a script
inline constexpr Code no_main{"driver-no-main"};          // the module has no graph function to run
inline constexpr Code input{"runtime-input"};             // an input that does not fit the model's

}  // namespace lathe::driver::codes
