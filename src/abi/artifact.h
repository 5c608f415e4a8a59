// What a compiled model exports: one struct under the symbol lathe_artifact_v1 (in a static library
// <prefix>_lathe_artifact, so that several models link into one program). The JIT builds the same struct in memory.
#pragma once

#include <stddef.h>

#include "compiled_program.h"
#include "kernel.h"
#include "runtime_kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LATHE_ARTIFACT_MAGIC "LATHEART"
#define LATHE_ARTIFACT_VERSION 1u
#define LATHE_ARTIFACT_SYMBOL "lathe_artifact_v1"
#define LATHE_WEIGHTS_ALIGNMENT 4096u

typedef struct LatheMetadata {
  const char* key;
  const char* value;
} LatheMetadata;

typedef struct LatheArtifact {
  char magic[8];              // LATHE_ARTIFACT_MAGIC, without a terminator
  uint32_t version;           // LATHE_ARTIFACT_VERSION
  uint32_t size;              // sizeof(LatheArtifact); grows only at its end
  uint32_t services_version;  // the LATHE_SERVICES_VERSION the kernels were compiled against
  uint32_t services_size;     // how much of the table they use
  uint64_t content_hash[2];   // over program, kernels' source and weights; also names the external weights

  const char* architecture;  // "x86_64", "aarch64"; what LLVM calls it
  const char* cpu_features;  // comma-separated features in LLVM's names that a machine must have; "" for none

  const LatheMetadata* metadata;  // at least "target", "builder", "version"
  uint64_t metadata_count;

  const void* program;  // program.h; 8-byte aligned
  uint64_t program_bytes;

  const LatheKernel* kernels;  // in the order of the program's table of kernels
  uint64_t kernel_count;

  // Either in the file, aligned to LATHE_WEIGHTS_ALIGNMENT, or in a file beside the artifact (a bare name, no folders)
  // that is mapped when the artifact is opened. weights_bytes counts for both.
  const void* weights;
  const char* weights_file;
  uint64_t weights_bytes;

  const LatheRuntimeKernelEntry* runtime_kernels;  // those linked in, or needed from whoever opens it
  uint64_t runtime_kernel_count;

  // Functions of the program as machine code, one each; null for one that is interpreted. A table that is missing, or
  // compiled against another version of the services, leaves all to the interpreter.
  const LatheProgramFunction* functions;
  uint64_t function_count;
  uint32_t program_services_version;  // LATHE_PROGRAM_SERVICES_VERSION
  uint32_t program_services_size;     // how much of the table they use
} LatheArtifact;

// The struct of artifacts from before programs were compiled ended here.
#define LATHE_ARTIFACT_FIRST_SIZE offsetof(LatheArtifact, functions)

#ifdef __cplusplus
}
#endif
