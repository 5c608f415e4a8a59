// The kernels' programs as one script, which debuggers and profilers show beside their machine code.
#pragma once

#include "codegen/emit/kernel.h"
#include "tir/script/dialect.h"

namespace lathe::codegen {

struct KernelText {
  std::string path;           // where the text lies: absolute
  tir::TextWithLines script;  // each kernel under its name
};

// Kernels of one content share code, which points to the first of them.
KernelText kernel_text(const std::vector<Kernel>& kernels, const std::string& path);

}  // namespace lathe::codegen
