// A call of a tensor function run by the interpreter: the target `interp`, for programs of devices that are not here.
#pragma once

#include "driver/arguments.h"
#include "tir/intrinsics/context.h"

namespace lathe::driver {

// The arguments are bound already (driver/arguments.h). What the function writes is copied back. Tensorized blocks find
// what they mean in `intrins`.
support::Status interpret_call(const FunctionSignature& signature, const tir::Function& function,
                               const std::vector<Argument>& arguments, const tir::Context* intrins);

}  // namespace lathe::driver
