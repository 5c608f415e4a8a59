// Functions of the register program that are there as machine code (abi/compiled_program.h).
#pragma once

#include "runtime/core/context.h"

namespace lathe::runtime {

// As interpreting the function: 0, or the code of the error that was said.
int32_t run_compiled(LatheContext& context, const abi::FunctionRecord& function, LatheProgramFunction code);

}  // namespace lathe::runtime
