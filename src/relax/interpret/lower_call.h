// One operator's call as a tensor program, by the operator's own meaning.
#pragma once

#include "relax/operator.h"

namespace lathe::relax {

struct LoweredCall {
  tir::Function function;    // parameters: inputs, outputs, scalars
  std::vector<Expr> inputs;  // the tensor arguments, tuples taken apart
  std::vector<StructInfo> outputs;
  std::vector<ir::Var> scalars;  // symbols of the caller
};

// Of an operator that means a tensor expression or a tensor program, its tensors of known shape.
Result<LoweredCall> lower_call(const Call& call);

}  // namespace lathe::relax
