// The register program to machine code with LLVM (abi/compiled_program.h). No LLVM type is seen here.
#pragma once

#include "codegen/emit/kernel.h"
#include "codegen/llvm/kernel_cache.h"
#include "support/result.h"
#include "target/target.h"

namespace lathe::codegen {

struct CompiledProgram {
  std::vector<std::string> symbols;           // one a function of the program; "" where it is interpreted
  std::shared_ptr<const std::string> object;  // relocatable ELF that defines them; null where there are none
};

// `program` is an encoded program, aligned to 8 bytes, that the runtime's verifier would accept. The object depends on
// it, on the target and on `debug_frames` alone.
// Diagnostics: codegen-unsupported-target.
struct CompileProgramOptions {
  KernelCache* cache = nullptr;
  bool debug_frames = false;  // debuggers find who called: a table beside the same code
};
support::Result<CompiledProgram> compile_program(std::string_view program, const target::Target& target,
                                                 const CompileProgramOptions& options = {});

// Text for people: LLVM IR or assembly of the program's functions.
support::Result<std::string> emit_program(std::string_view program, const target::Target& target, EmitKind kind);

}  // namespace lathe::codegen
