// Kernels to machine code with LLVM: in parallel, deduplicated by content, through a cache. No LLVM type is seen here.
// Where there are more than `most_full`, those that do least get code that is made quickly, several to an object.
#pragma once

#include "codegen/emit/kernel.h"
#include "codegen/llvm/kernel_cache.h"

namespace lathe::codegen {

struct KernelText;  // codegen/emit/kernel_text.h

struct CompileOptions {
  int threads = 1;                   // compile threads; the result does not depend on it
  KernelCache* cache = nullptr;      // null: nothing is looked up or kept
  std::function<bool()> cancelled;   // asked by the calling thread between kernels; true stops: "ir-cancelled"
  size_t most_full = 256;            // kernels that are optimised in full
  const KernelText* text = nullptr;  // of these kernels: line tables point into it, and nothing comes from the cache
};

// One kernel's machine code. Kernels of equal content share symbol and object; one object may hold several symbols.
struct CompiledKernel {
  std::string name;                           // the kernel's, as the program calls it
  std::string symbol;                         // of its function in the object: from the content
  std::shared_ptr<const std::string> object;  // relocatable ELF
  bool from_cache = false;
};

struct CompiledKernels {
  target::Target target;
  std::vector<CompiledKernel> kernels;  // in the order they were given
};

// Diagnostics: codegen-illegal-kernel, codegen-unsupported-target.
support::Result<CompiledKernels> compile_kernels(const std::vector<Kernel>& kernels, const target::Target& target,
                                                 const CompileOptions& options = {});

// Text for people: LLVM IR, assembly (one file that assembles), or the object of all kernels under their own names.
support::Result<std::string> emit_llvm(const std::vector<Kernel>& kernels, const target::Target& target,
                                       const EmitOptions& options);

// Which LLVM generates the code: "19.1.7".
std::string llvm_version();

}  // namespace lathe::codegen
