// The diagnostic codes of this room.
#pragma once

#include "support/diagnostic.h"

namespace lathe::tool::codes {

using support::Code;

inline constexpr Code option{"tool-option"};                    // an option or file name that does not fit
inline constexpr Code run{"tool-run"};                          // inputs or outputs of `lathe run` that do not fit
inline constexpr Code npy{"tool-npy"};                          // a .npy or .npz file that cannot be read or written
inline constexpr Code no_onnxruntime{"verify-no-onnxruntime"};  // ONNX Runtime is not there to compare with

}  // namespace lathe::tool::codes
