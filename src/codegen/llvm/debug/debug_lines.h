// Line tables: which line of the kernels' text the machine code at an address is made from. Private to this folder
// (LLVM headers).
//
// They change no code, but for the order of the first instructions of functions for AArch64 (debug_lines_test.cpp).
#pragma once

#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/emit/kernel_text.h"

namespace lathe::codegen {

// Of one module, which may hold several kernels.
class DebugLines {
 public:
  DebugLines(llvm::Module& module, const KernelText& text);

  // Makes `function` known under `name`, as part of the kernel; gives the place of what belongs to no statement. Where
  // `at` is given, the function begins at that statement, else where the kernel does.
  llvm::DebugLoc begin(llvm::Function& function, const std::string& name, const Kernel& kernel,
                       const ir::Node* at = nullptr);
  // The place of a statement in a function that has begun; `otherwise` for one that the text does not show.
  llvm::DebugLoc at(const ir::Node* statement, const llvm::Function& function, const Kernel& kernel,
                    const llvm::DebugLoc& otherwise) const;
  // After the last function.
  void finish() { builder_.finalize(); }

 private:
  const tir::TextWithLines::Lines& lines_of(const Kernel& kernel) const { return text_.script.lines.at(kernel.name); }

  const KernelText& text_;
  llvm::DIBuilder builder_;
  llvm::DIFile* file_;
};

}  // namespace lathe::codegen
