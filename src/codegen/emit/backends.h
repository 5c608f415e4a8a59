// The code generators of abi/backends.def. Whoever uses the table links the backends it names.
#pragma once

#include "codegen/emit/kernel.h"

namespace lathe::codegen {

#define LATHE_BACKEND(device, type, kind, function)                                                       \
  support::Result<std::string> function(const std::vector<Kernel>& kernels, const target::Target& target, \
                                        const EmitOptions& options);
#include "abi/backends.def"
#undef LATHE_BACKEND

struct Backend {
  std::string_view kind;  // Target::kind
  EmitFunction emit;
};

inline std::span<const Backend> backends() {
  static const Backend rows[] = {
#define LATHE_BACKEND(device, type, kind, function) {#kind, &function},
#include "abi/backends.def"
#undef LATHE_BACKEND
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
