// Well-formedness of tensor functions, at block level and after each lowering pass: definitions, dtypes, ranks, block
// bindings, declared regions, and what is legal at the stage (tir/stages.h).
#pragma once

#include "support/diagnostic.h"
#include "tir/stmt.h"

namespace lathe::tir {

// What is wrong with `function` after the pass `after` ("": as a user writes it; "kernel": after all). Empty when well
// formed. At most sixteen are reported.
support::Diagnostics verify(const Function& function, std::string_view after = {});
// Every tensor function of a module: an ir::Verifier for run_passes.
support::Diagnostics verify_module(const IRModule& module, const std::string& after);

}  // namespace lathe::tir
