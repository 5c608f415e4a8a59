// For tests: a lowered module computes what a graph says, by the interpreter and in the runtime, in two runs.
#pragma once

#include "ir/function.h"
#include "ir/tensor_data.h"

namespace lathe::lower::testing {

// Fails the test where a result of "main" differs.
void expect_same_results(const ir::IRModule& graph, const ir::IRModule& lowered,
                         const std::vector<ir::TensorData>& inputs);

}  // namespace lathe::lower::testing
