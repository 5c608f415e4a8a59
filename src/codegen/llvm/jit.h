// Compiled kernels loaded into this process.
#pragma once

#include "abi/kernel.h"
#include "codegen/llvm/compile.h"

namespace lathe::codegen {

// Functions that live as long as this object.
class LoadedKernels {
 public:
  virtual ~LoadedKernels() = default;
  // In the order of the compiled kernels.
  const std::vector<LatheKernel>& functions() const { return functions_; }

 protected:
  std::vector<LatheKernel> functions_;
};

// Diagnostics: codegen-unsupported-target when the kernels are for another architecture or for features that this
// machine lacks.
support::Result<std::shared_ptr<LoadedKernels>> load_kernels(const CompiledKernels& compiled);

}  // namespace lathe::codegen
