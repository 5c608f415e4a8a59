// The backend to copy: takes kernels, checks what every backend relies on, and emits a listing instead of code. Its
// kernels do nothing; the runtime's null device counts their launches.
#pragma once

#include "codegen/emit/kernel.h"

namespace lathe::codegen {

// A line a kernel, and a line for each of its parameters and for what its body is made of. Listings are all it has:
// other kinds are codegen-unsupported-emission.
support::Result<std::string> emit_null(const std::vector<Kernel>& kernels, const target::Target& target,
                                       const EmitOptions& options);

}  // namespace lathe::codegen
