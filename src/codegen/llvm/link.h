// Artifacts on disk (abi/artifact.h): kernels' objects, the register program, metadata and weights linked in process
// into a shared library, an archive or one object. No system linker is used; equal contents give equal bytes.
#pragma once

#include "codegen/llvm/compile.h"
#include "codegen/llvm/program/compile_program.h"

namespace lathe::codegen {

// Part of the weights section; the bytes are read where they lie and never pass through LLVM.
struct WeightBytes {
  int64_t offset = 0;
  std::string_view bytes;
  support::Hash128 content;  // of the bytes
};

// Runtime kernels that are linked in: "strings.concat" is the function lathe_kernel_strings_concat of the object.
struct LinkedKernels {
  std::string_view object;
  std::vector<std::string> names;
};

struct ArtifactContents {
  const CompiledKernels* kernels = nullptr;     // in the order of the program's table of kernels
  std::string_view program;                     // the encoded register program
  const CompiledProgram* functions = nullptr;   // its functions as machine code; null: all are interpreted
  std::map<std::string, std::string> metadata;  // at least target, builder, version
  std::vector<WeightBytes> weights;             // in order of offset, not overlapping
  int64_t weights_bytes = 0;
  std::string weights_file;                  // a bare name: the weights lie in that file beside the artifact
  std::vector<std::string> runtime_kernels;  // those of no family below are supplied by whoever opens the artifact
  std::vector<LinkedKernels> linked_kernels = {};
};

enum class ArtifactForm : uint8_t {
  shared_library,  // exports lathe_artifact_v1
  archive,         // exports <prefix>_lathe_artifact
  object,          // the same as one relocatable object
};

struct LinkOptions {
  ArtifactForm form = ArtifactForm::shared_library;
  std::string prefix;  // of archive and object: letters, digits and underscores
};

// Over program, kernels, weights, target and metadata.
support::Hash128 content_hash(const ArtifactContents& contents);

// Writes the artifact; with weights_file, that file beside it too. The file appears whole or not at all.
// Diagnostics: codegen-file-failed, codegen-link-failed.
support::Status link_artifact(const ArtifactContents& contents, const LinkOptions& options, const std::string& path);

// The C header that goes with an archive or object: declares <prefix>_lathe_artifact and how to open it.
std::string artifact_header(const std::string& prefix);

}  // namespace lathe::codegen
