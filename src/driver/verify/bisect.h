// Which pass makes a model compute something else: every program between two passes is interpreted on one set of
// inputs, and the model is compiled with each pass switched off in turn.
#pragma once

#include "driver/compile.h"
#include "driver/verify/tensors.h"

namespace lathe::driver {

// The first place where what is computed changes.
struct FirstDifference {
  std::string pass;     // a row of the pipeline, "generate_code" where only the compiled code differs; empty: nowhere
  std::string failure;  // what the pass or the interpreter said, where it gave up
  std::string tensor;   // the first that differs among those the program has before and after the pass, or an output
  std::string node;     // of the model, that the tensor is of; empty where it is of none
  Difference difference;
  int compared = 0;  // programs interpreted
};

// Runs the rows one after another and interprets the function "main" after each that changed it.
support::Result<FirstDifference> first_difference(const ir::IRModule& module, const std::vector<ir::PassRow>& rows,
                                                  const ir::PassContext& context,
                                                  const std::vector<ir::TensorData>& inputs,
                                                  const std::vector<ir::TensorData>& expected);

// What becomes of the results without one pass.
struct SwitchedOff {
  std::string pass;
  enum class Verdict { agrees, differs, needed } verdict = Verdict::agrees;
  std::string said;  // how it differs, or why it does not compile
};

struct Bisection {
  std::string dims;  // of the trial: "batch=3", or ""
  FirstDifference first;
  bool agrees = false;  // with every pass
  std::vector<SwitchedOff> without;
};

// `expected`: what the model means. Where `interpret` is false (models too large for it) only passes are switched off.
support::Result<Bisection> bisect(const ir::IRModule& module, const CompileOptions& options,
                                  const std::vector<ir::TensorData>& inputs,
                                  const std::vector<ir::TensorData>& expected, bool interpret);

}  // namespace lathe::driver
