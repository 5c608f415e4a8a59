// The evaluator of constant folding: compiles the constant part for this machine and runs it in process.
#pragma once

#include "driver/compile.h"

namespace lathe::driver {

// The rows of the pipeline that are off when constants are computed: those that fold constants, whose names begin with
// "fold_" (what is left after inlining is computed, not folded again: that would compile without end), and those that
// only make more to fold.
std::set<std::string> rows_off_in_evaluation(const target::Target& target);

// What computing constants may take: a model is compiled in a time and memory that its size tells, whatever its
// constants mean. Beyond it the evaluator answers ir::codes::evaluation_limit.
struct EvaluationLimits {
  double operations = 4e9;
  double seconds = 2;         // of the run: where operations tell too little
  uint64_t bytes = 64 << 20;  // and twice the inputs
};

// Compiles with the options' threads, cache and cancellation, for this machine, with no folding of its own.
ir::Evaluator native_evaluator(const CompileOptions& options, const EvaluationLimits& limits = {});

}  // namespace lathe::driver
