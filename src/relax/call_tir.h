// call_tir: the bridge from relax to tir, in destination-passing style.
#pragma once

#include "relax/operator.h"

namespace lathe::relax {

// Calls the tensor program `function` with the tensors `args`, then fresh tensors of `outputs`, then the scalars of
// `scalars`. Its value is the output, or a tuple of them. Lowering and the interpreters know this row.
extern const Operator call_tir_operator;

// As call_tir, but output k is args[inplace_indices[k]] with what the program wrote there; where it is -1, a fresh
// tensor behind `args`. The argument stays as it was for whoever reads it later: then the memory is another.
extern const Operator call_tir_inplace_operator;

// A tensor of any values: what calls in place begin with.
extern const Operator alloc_tensor_operator;

Expr global_var(std::string name);
Result<Expr> call_tir(const std::string& function, std::vector<Expr> args, std::vector<StructInfo> outputs,
                      std::vector<ir::Expr> scalars = {});
// Of one output, in the place of the last of `args`.
Result<Expr> call_tir_inplace(const std::string& function, std::vector<Expr> args, std::vector<ir::Expr> scalars = {},
                              ir::Origin origin = {});
Result<Expr> alloc_tensor(const TensorStructInfo& info);

// A call known to be a call_tir or a call_tir_inplace, taken apart.
struct CallTir {
  std::string function;
  std::vector<Expr> args;
  std::vector<StructInfo> outputs;
  std::vector<ir::Expr> scalars;
  std::vector<int64_t> inplace_indices = {};  // by output; of a call_tir: none

  // The argument that output number `k` is; nothing: a tensor of its own.
  std::optional<size_t> updated(size_t k) const;
};
std::optional<CallTir> as_call_tir(const Expr& e);
bool is_alloc_tensor(const Expr& e);

}  // namespace lathe::relax
