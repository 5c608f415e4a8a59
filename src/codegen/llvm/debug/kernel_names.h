// What profilers and debuggers call the code of kernels: "lathe::" and the kernel's name, where objects have symbols
// made from the content.
#pragma once

#include "codegen/llvm/compile.h"
#include "codegen/llvm/program/compile_program.h"

namespace lathe::codegen {

class KernelNames {
 public:
  // Kernels of one content share a function, which is called after all of them: "lathe::add|add_1". Functions of the
  // register program are "lathe::program_0", ….
  explicit KernelNames(const std::vector<CompiledKernel>& kernels, const CompiledProgram* program = nullptr);

  // The symbol's name, and what follows the kernel's in it (".parallel"); nothing where it is no kernel's. Different
  // symbols have different names, of letters, digits and "_.:|".
  std::optional<std::string> find(std::string_view symbol) const;

 private:
  std::map<std::string, std::string, std::less<>> names_;  // by symbol
};

// The relocatable object with those names in its table of symbols.
std::string with_kernel_names(std::string object, const KernelNames& names);

}  // namespace lathe::codegen
