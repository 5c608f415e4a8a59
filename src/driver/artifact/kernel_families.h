// Families of runtime kernels that models may need beside generated code (src/runtime/kernels).
#pragma once

#include <span>
#include <string_view>

#include "abi/runtime_kernel.h"

namespace lathe::driver {

struct KernelFamily {
  std::string_view name;                 // "strings": its kernels are "strings.concat" and so on
  const LatheRuntimeKernelTable* table;  // for models that run in this process
  std::string_view object;               // the same to be linked into artifacts for this architecture
};
std::span<const KernelFamily> kernel_families();

// The tables of all families, as LatheOpenOptions takes them.
std::span<const LatheRuntimeKernelTable* const> kernel_tables();

}  // namespace lathe::driver
