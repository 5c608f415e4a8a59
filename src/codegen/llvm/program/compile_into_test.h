// For the tests of this folder: artifacts written by hand get machine code for their programs.
#pragma once

#include "codegen/llvm/load/jit.h"
#include "runtime/core/program_fixture.h"

namespace lathe::codegen::test {

// The code, which lives as long as what is returned. Models that were opened before go on interpreting.
inline std::shared_ptr<LoadedKernels> compile_into(runtime::testing::TestArtifact& artifact) {
  const target::Target target = target::native_target();
  const std::string_view bytes(artifact.program.data(), artifact.program.size());
  const CompiledProgram program = compile_program(bytes, target).value_or_throw();
  const CompiledKernels none{.target = target, .kernels = {}};
  auto loaded = load_kernels(none, &program).value_or_throw();
  artifact.artifact.functions = loaded->program().empty() ? nullptr : loaded->program().data();
  artifact.artifact.function_count = loaded->program().size();
  artifact.artifact.program_services_version = LATHE_PROGRAM_SERVICES_VERSION;
  artifact.artifact.program_services_size = sizeof(LatheProgramServices);
  return loaded;
}

}  // namespace lathe::codegen::test
