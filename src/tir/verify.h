// Well-formedness of tensor functions, at block level and after each lowering pass: definitions, dtypes, ranks, block
// bindings, declared regions, and what is legal at the stage (tir/stages.h).
#pragma once

#include "support/diagnostic.h"
#include "tir/stages.h"
#include "tir/stmt.h"

namespace lathe::tir {

// What is wrong with `function` once `passes` have run on it (none: as a user writes it; `all_lowered()`: as code
// generation wants it). Empty when well formed. At most sixteen are reported.
support::Diagnostics verify(const Function& function, const ir::RowsRun& passes = {});
// Every tensor function of a module: an ir::Verifier for run_passes.
support::Diagnostics verify_module(const IRModule& module, const ir::RowsRun& passes);

}  // namespace lathe::tir
