// Compiled kernels loaded into this process.
#pragma once

#include "abi/compiled_program.h"
#include "codegen/llvm/compile.h"
#include "codegen/llvm/program/compile_program.h"

namespace lathe::codegen {

// Functions that live as long as this object.
class LoadedKernels {
 public:
  virtual ~LoadedKernels() = default;
  // In the order of the compiled kernels.
  const std::vector<LatheKernel>& functions() const { return functions_; }
  // Of the register program, null where one is interpreted; empty when none was compiled.
  const std::vector<LatheProgramFunction>& program() const { return program_; }

 protected:
  std::vector<LatheProgramFunction> program_;
  std::vector<LatheKernel> functions_;
};

// Diagnostics: codegen-unsupported-target when the kernels are for another architecture or for features that this
// machine lacks.
support::Result<std::shared_ptr<LoadedKernels>> load_kernels(const CompiledKernels& compiled,
                                                             const CompiledProgram* program = nullptr);

}  // namespace lathe::codegen
