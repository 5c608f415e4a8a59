// The table of code generators. A backend is a folder in codegen, one in runtime, and a row of backends.def; whoever
// uses the table links the backends it names.
#pragma once

#include "codegen/emit/kernel.h"

namespace lathe::codegen {

#define LATHE_CODEGEN(kind, function)                                                                     \
  support::Result<std::string> function(const std::vector<Kernel>& kernels, const target::Target& target, \
                                        const EmitOptions& options);
#include "codegen/emit/backends.def"
#undef LATHE_CODEGEN

struct Backend {
  std::string_view kind;  // Target::kind
  EmitFunction emit;
};

inline std::span<const Backend> backends() {
  static const Backend rows[] = {
#define LATHE_CODEGEN(kind, function) {#kind, &function},
#include "codegen/emit/backends.def"
#undef LATHE_CODEGEN
  };
  return rows;
}

// The row for a target's kind, or null.
inline const Backend* find_backend(std::string_view kind) {
  for (const Backend& row : backends())
    if (row.kind == kind) return &row;
  return nullptr;
}

}  // namespace lathe::codegen
