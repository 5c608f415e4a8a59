// The object with the artifact's struct and its tables. Private to this folder.
#pragma once

#include "codegen/llvm/debug/kernel_names.h"
#include "codegen/llvm/link.h"

namespace lathe::codegen {

// An object that defines `symbol` and refers to the kernels' functions, by `names` where they are given, and to
// `weights_symbol`.
support::Result<std::string> artifact_object(const ArtifactContents& contents, const std::string& symbol,
                                             const std::string& weights_symbol, const KernelNames* names);

}  // namespace lathe::codegen
