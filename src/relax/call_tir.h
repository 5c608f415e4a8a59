// call_tir: the bridge from graph to loops, in destination-passing style. `call_tir(f, (x, y), shape, outputs)` runs the
// PrimFunc f on the tensors, fresh output tensors and the scalars, in that order of parameters.
#pragma once

#include "relax/operator.h"

namespace lathe::relax {

extern const Operator call_tir_operator;

// The parts of a call of call_tir.
struct CallTir {
  std::string function;
  std::vector<Expr> tensors;
  std::vector<ir::Expr> scalars;
  std::vector<StructInfo> outputs;  // TensorStructInfo each
};

// The call; its struct info is the output's, or the tuple of the outputs'.
Expr call_tir(const CallTir& parts);
// The parts of `e` when it is a call of call_tir.
std::optional<CallTir> as_call_tir(const Expr& e);

}  // namespace lathe::relax
