// Tensor functions compiled and called one by one, in destination-passing style: what `lathe.build` gives. A module of
// a graph is compiled by driver/compile.h.
#pragma once

#include "abi/kernel.h"
#include "codegen/emit/kernel.h"
#include "driver/arguments.h"
#include "driver/compile.h"

namespace lathe::driver {

class BuiltFunctions {
 public:
  // Compiles every tensor function of the module and loads it. A module with graph functions is refused.
  // Diagnostics: those of the passes, driver-not-tensor-functions.
  static support::Result<std::shared_ptr<const BuiltFunctions>> build(ir::IRModule module,
                                                                      const CompileOptions& options);
  // What `save` wrote.
  static support::Result<std::shared_ptr<const BuiltFunctions>> open(const std::string& path);

  const std::vector<FunctionSignature>& signatures() const { return signatures_; }
  // Null where there is no function of that name.
  const FunctionSignature* find(const std::string& name) const;

  // Checks the arguments and runs; threads 0: as the environment says. Diagnostics: runtime-input-…, runtime-failed.
  support::Status call(const std::string& name, const std::vector<Argument>& arguments, int threads = 0) const;
  // Seconds a run, one figure a repeat: the mean of `number` runs, or of more where a repeat must take
  // `min_repeat_seconds`. Before each repeat, `flush_bytes` of memory are walked through.
  struct Timing {
    int number = 10, repeat = 1, threads = 0;
    double min_repeat_seconds = 0;
    int64_t flush_bytes = 0;
  };
  support::Result<std::vector<double>> time(const std::string& name, const std::vector<Argument>& arguments,
                                            const Timing& timing) const;

  // The code as text: "ll" (LLVM IR), "s" or "asm" (assembly), "tir" (what the code is generated from).
  support::Result<std::string> source(const std::string& form) const;
  // As a shared library, for `open`.
  support::Status save(const std::string& path) const;

 private:
  struct Entry {
    LatheKernel kernel = nullptr;
    std::vector<ScalarSource> scalars;  // in the order the kernel takes them
  };
  struct Call;
  BuiltFunctions() = default;
  support::Result<Call> prepare(const std::string& name, const std::vector<Argument>& arguments, int threads) const;

  target::Target target_;
  std::vector<FunctionSignature> signatures_;
  std::vector<Entry> entries_;
  ir::IRModule lowered_;
  std::shared_ptr<const tir::Context> context_;  // what the user has registered
  codegen::CompiledKernels kernels_;
  std::shared_ptr<const void> keeps_;  // the code
};
using BuiltFunctionsRef = std::shared_ptr<const BuiltFunctions>;

}  // namespace lathe::driver
