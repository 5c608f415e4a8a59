// A call of a tensor function run by the interpreter: the target `interp`, for programs of devices that are not here.
#pragma once

#include "driver/arguments.h"
#include "tir/intrinsics/context.h"

namespace lathe::driver {

// The arguments are bound already (driver/arguments.h). What the function of the module writes is copied back.
// Tensorized blocks find what they mean in `context`.
support::Status interpret_call(const FunctionSignature& signature, const ir::IRModule& module,
                               const std::vector<Argument>& arguments, const tir::Context* context);

}  // namespace lathe::driver
