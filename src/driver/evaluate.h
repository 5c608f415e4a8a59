// The evaluator of constant folding: compiles the constant part for this machine and runs it in process.
#pragma once

#include "driver/compile.h"

namespace lathe::driver {
// Compiles with the options' threads, cache and cancellation, for this machine, with no folding of its own.
ir::Evaluator native_evaluator(const CompileOptions& options);
}  // namespace lathe::driver
