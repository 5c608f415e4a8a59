// The diagnostic codes of this room.
#pragma once

#include "support/diagnostic.h"

namespace lathe::driver::codes {

using support::Code;

inline constexpr Code script_file{"driver-script-file"};    // a script that cannot be read or written
inline constexpr Code unknown_pass{"driver-unknown-pass"};  // an option names a pass that the pipeline has not
inline constexpr Code runtime{"runtime-failed"};            // the runtime refused, with what it says
inline constexpr Code limit{"runtime-limit"};               // of a run: memory, steps, time
inline constexpr Code cancelled{"runtime-cancelled"};       // a run that somebody ended
inline constexpr Code cannot_write{"driver-cannot-write"};  // an output that cannot be written
inline constexpr Code no_code{"driver-no-code"};            // the target gives no code of that form
inline constexpr Code unknown_form{"driver-unknown-form"};  // no form of output has this name or extension
inline constexpr Code verify_unknown_shape{
    "verify-unknown-shape"};  // a symbol without a value, so there are no inputs to compare with
inline constexpr Code bisect_failure{"bisect-failure"};        // a pass, or a compile without one, that gave up
inline constexpr Code reduce_no_failure{"reduce-no-failure"};  // the command does not fail on the whole
inline constexpr Code reduce_no_file{"reduce-no-file"};        // what is to be reduced cannot be read
inline constexpr Code script_dims{"driver-script-dims"};       // dimensions are fixed for a model, not for a script
inline constexpr Code registered_function{"driver-registered-function"};    // of this process, in what is to be saved
inline constexpr Code no_main{"driver-no-main"};                            // the module has no graph function to run
inline constexpr Code not_tensor_functions{"driver-not-tensor-functions"};  // a graph where only those are built
inline constexpr Code cannot_open{"runtime-cannot-open"};                   // no library of tensor functions
inline constexpr Code input_name{"runtime-input-name"};                     // no function of that name
inline constexpr Code input_count{"runtime-input-count"};
inline constexpr Code input_kind{"runtime-input-kind"};  // a number for a tensor, a tensor for a number, one too large
inline constexpr Code input_dtype{"runtime-input-dtype"};
inline constexpr Code input_shape{"runtime-input-shape"};
inline constexpr Code input_strides{"runtime-input-strides"};
inline constexpr Code input_device{"runtime-input-device"};
inline constexpr Code input_overlap{"runtime-input-overlap"};  // memory that is written is another argument's too
inline constexpr Code input{"runtime-input"};                  // an input that does not fit the model's
inline constexpr Code json{"driver-json"};                     // a text that is no saved program, or a damaged one
inline constexpr Code json_version{"driver-json-version"};     // written by a newer Lathe
inline constexpr Code json_holds{"driver-json-holds"};         // what cannot be saved
inline constexpr Code no_value{"rewrite-no-value"};            // a name that no value of the model has, or can have
inline constexpr Code rewritten_differs{"rewrite-differs"};    // a rewritten model that computes something else

}  // namespace lathe::driver::codes
