// The intrinsics that come with the compiler: dot products of narrow types, as instructions of x86 and AArch64 do them.
#pragma once

#include "target/target.h"
#include "tir/intrinsics/context.h"

namespace lathe::tir {

// The one of that name; nothing where there is none. Whether a target can run it, `offered_intrins` says.
std::optional<TensorIntrin> library_intrin(const std::string& name);
std::vector<std::string> library_intrin_names();
// Those for which the target has the instructions.
std::vector<std::string> offered_intrins(const target::Target& target);

}  // namespace lathe::tir
