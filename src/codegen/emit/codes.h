// The diagnostics of code generation.
#pragma once

#include "support/diagnostic.h"

namespace lathe::codegen::codes {

inline constexpr support::Code illegal_kernel{"codegen-illegal-kernel"};
inline constexpr support::Code unsupported_target{"codegen-unsupported-target"};
inline constexpr support::Code unsupported_emission{"codegen-unsupported-emission"};
inline constexpr support::Code unsupported_intrinsic{"codegen-unsupported-intrinsic"};  // of LLVM, called by name
inline constexpr support::Code link_failed{"codegen-link-failed"};
inline constexpr support::Code file_failed{"codegen-file-failed"};

}  // namespace lathe::codegen::codes
