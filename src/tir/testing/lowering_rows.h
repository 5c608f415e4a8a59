// The lowering passes in the order of driver/pipeline.cpp, for tests of this room and of those that cannot see the
// pipeline. A test beside the pipeline holds the two against each other.
#pragma once

#include "tir/passes/passes.h"

namespace lathe::tir::testing {

const std::vector<PassRow>& lowering_rows();
// Runs all rows on one function.
Result<Function> lower_to_kernel(const Function& function);

}  // namespace lathe::tir::testing
