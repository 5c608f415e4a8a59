// Pieces of floating point that LLVM would call a library for, written as IR. Private to this folder.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/llvm/emitter.h"

namespace lathe::codegen {

// double fmod(double, double), exact; added to the module once.
llvm::Function* remainder_function(llvm::Module& module);

// Multiply-add without the instruction for it, rounded once. The float64 form is exact but where a partial product
// underflows or overflows.
llvm::Value* fused_single(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y, llvm::Value* z);
llvm::Value* fused_double(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y, llvm::Value* z);
// x + y in float64, rounded to odd.
llvm::Value* sum_to_odd(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y);

template <class Operation>
KernelEmitter::V KernelEmitter::in_single(DType t, Operation&& operation, std::initializer_list<V> operands) {
  std::vector<V> wide;
  for (const V operand : operands) wide.push_back(widen(t, operand));
  return narrow(t, operation(wide));
}

}  // namespace lathe::codegen
