// The oracle of graphs: evaluates a relax function on tensors, one operator at a time, each by its own meaning (tensor
// expression to tensor program to tir's interpreter). Slow and obvious. Symbolic dimensions are bound by the arguments;
// every result is checked against the struct info of its variable.
#pragma once

#include "ir/tensor_data.h"
#include "relax/expr.h"
#include "support/result.h"

namespace lathe::relax {

struct EvaluateOptions {
  int64_t max_steps = 2'000'000'000;  // of tir's interpreter, for each operator
  int64_t max_turns = 1'000'000;      // of one loop
};

// The outputs (a tuple's items in order) of `function` on `inputs`, one a parameter.
support::Result<std::vector<ir::TensorData>> evaluate(const ir::IRModule& module, const std::string& function,
                                                      const std::vector<ir::TensorData>& inputs,
                                                      const EvaluateOptions& options);
// The same with default options: an ir::Evaluator, for passes in tests.
support::Result<std::vector<ir::TensorData>> evaluate(const ir::IRModule& module, const std::string& function,
                                                      const std::vector<ir::TensorData>& inputs);

}  // namespace lathe::relax
