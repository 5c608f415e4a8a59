// call_tir: the bridge from relax to tir, in destination-passing style.
#pragma once

#include "relax/operator.h"

namespace lathe::relax {

// Calls the tensor program `function` with the tensors `args`, then fresh tensors of `outputs`, then the scalars of
// `scalars`. Its value is the output, or a tuple of them. Lowering and the interpreters know this row.
extern const Operator call_tir_operator;

Expr global_var(std::string name);
Result<Expr> call_tir(const std::string& function, std::vector<Expr> args, std::vector<StructInfo> outputs,
                      std::vector<ir::Expr> scalars = {});

// A call known to be a call_tir, taken apart.
struct CallTir {
  std::string function;
  std::vector<Expr> args;
  std::vector<StructInfo> outputs;
  std::vector<ir::Expr> scalars;
};
std::optional<CallTir> as_call_tir(const Expr& e);

}  // namespace lathe::relax
