// Kernel: one function of kernel tir under the name the register program calls it by; and how it is emitted.
//
// Kernel tir: no blocks; loops serial or parallel; every buffer access has one flat int64 index (scalar or vector) and
// perhaps a predicate; vectors explicit; local memory by Allocate: scope "global" is heap scratch, "local" the stack,
// "register" SSA values (every index into it a constant). The function attribute "inplace" lists groups of handle
// parameters, by number, that may be the same memory: [[0, 2]]; all others never overlap.
#pragma once

#include "support/result.h"
#include "target/target.h"
#include "tir/stmt.h"

namespace lathe::codegen {

struct Kernel {
  std::string name;
  tir::Function function;
};

enum class EmitKind : uint8_t {
  object,    // relocatable machine code
  assembly,  // the target's assembly text
  llvm_ir,   // LLVM IR text after optimisation
  listing,   // what the backend has that people can read
};

// "object", "assembly", …
std::string_view emit_kind_name(EmitKind kind);

struct EmitOptions {
  EmitKind kind = EmitKind::listing;
  int threads = 1;
  bool comments = false;  // of the assembler's: loops, spills
};

// Text or bytes of all kernels in order, as a backend prints them for people.
using EmitFunction = support::Result<std::string> (*)(const std::vector<Kernel>& kernels, const target::Target& target,
                                                      const EmitOptions& options);

// What is wrong with the kernel as kernel tir, in words that name the kernel and the kind of target that it is compiled
// for; empty when every backend may take it.
support::Diagnostics check_kernel(const Kernel& kernel, std::string_view target_kind);

// What a kernel's code depends on: its structure, and the model nodes its checks name. Stable across processes.
support::Hash128 kernel_hash(const Kernel& kernel);

// The groups of handle parameters that may share memory, one number a handle parameter; equal numbers may overlap.
std::vector<int> sharing_groups(const tir::PrimFunc& function);

}  // namespace lathe::codegen
