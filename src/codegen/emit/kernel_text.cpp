#include "codegen/emit/kernel_text.h"

#include <filesystem>

namespace lathe::codegen {

KernelText kernel_text(const std::vector<Kernel>& kernels, const std::string& path) {
  ir::IRModule module;
  for (const Kernel& kernel : kernels) module.set(kernel.name, kernel.function);
  return {std::filesystem::absolute(path).lexically_normal().string(), tir::text_with_lines(module)};
}

}  // namespace lathe::codegen
