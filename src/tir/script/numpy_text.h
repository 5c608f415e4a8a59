// Tensor programs as Python that runs: loops over NumPy arrays, one element at a time. Slow and obvious.
#pragma once

#include "ir/function.h"
#include "support/result.h"

namespace lathe::tir {

// A Python module with a function for each tensor function of `module`, in order; graph functions are left out. Arrays
// are its parameters, outputs included, then scalars. Every operation is done in its own dtype, as the interpreter does
// it; a flat buffer of a lowered function is a flat array. Refused ("tir-no-numpy", at its statement) is what NumPy has
// no word for: functions outside the program, barriers among threads, buffers whose elements are vectors, memory whose
// size nothing tells.
support::Result<std::string> numpy_text(const ir::IRModule& module);

}  // namespace lathe::tir
