// Functions of the register program that are there as machine code (abi/compiled_program.h).
#pragma once

#include "runtime/core/context.h"

namespace lathe::runtime {

// Null where the function is to be interpreted: the artifact has no code for it, or code for other services.
LatheProgramFunction compiled_function(const LatheModel& model, uint32_t index);

// As interpreting the function: 0, or the code of the error that was said.
int32_t run_compiled(LatheContext& context, const abi::FunctionRecord& function, LatheProgramFunction code);

}  // namespace lathe::runtime
