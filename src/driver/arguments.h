// The arguments of a call of a tensor function, checked against what it declares: number, dtypes, shapes, strides,
// overlaps. Symbolic dimensions are bound by the tensors' sizes.
#pragma once

#include "abi/dlpack.h"
#include "support/result.h"
#include "tir/stmt.h"

namespace lathe::driver {

// An argument of a call: a tensor, or a scalar.
using Argument = std::variant<const DLTensor*, int64_t, double>;

// One function as its callers see it.
struct FunctionSignature {
  std::string name;
  tir::Function declared;        // parameters and buffers as written; the body is empty
  std::vector<bool> is_written;  // of each parameter: whether the function stores into it
};

// Where a number in a kernel's table of scalars comes from: a scalar parameter, or a symbol of the buffers' shapes.
struct ScalarSource {
  size_t parameter = 0;
  ir::Var symbol;  // null: the parameter
  ir::DType dtype;
};

struct BoundArguments {
  std::vector<void*> addresses;  // of the handle parameters, in order
  std::vector<int64_t> scalars;  // as the sources say; floats by the bits of their double
};

// Diagnostics: runtime-input-count, runtime-input-kind, runtime-input-dtype, runtime-input-shape,
// runtime-input-strides, runtime-input-device, runtime-input-overlap.
support::Result<BoundArguments> bind_arguments(const FunctionSignature& signature,
                                               const std::vector<Argument>& arguments,
                                               const std::vector<ScalarSource>& sources);

// "A: float32 [128, n]", as messages describe a parameter.
std::string describe_parameter(const FunctionSignature& signature, size_t parameter);

}  // namespace lathe::driver
