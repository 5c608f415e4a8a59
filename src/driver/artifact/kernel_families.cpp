#include "driver/artifact/kernel_families.h"

// One row a family.
#define LATHE_KERNEL_FAMILIES(X) X(strings) X(images)

extern "C" {
#define LATHE_DECLARE(family)                                          \
  extern const LatheRuntimeKernelTable lathe_runtime_kernels_##family; \
  extern const char lathe_linked_kernels_##family##_begin[];           \
  extern const char lathe_linked_kernels_##family##_end[];
LATHE_KERNEL_FAMILIES(LATHE_DECLARE)
#undef LATHE_DECLARE
}

namespace lathe::driver {

std::span<const KernelFamily> kernel_families() {
  static const KernelFamily all[] = {
#define LATHE_ROW(family)                  \
  {#family,                                \
   &lathe_runtime_kernels_##family,        \
   {lathe_linked_kernels_##family##_begin, \
    static_cast<size_t>(lathe_linked_kernels_##family##_end - lathe_linked_kernels_##family##_begin)}},
      LATHE_KERNEL_FAMILIES(LATHE_ROW)
#undef LATHE_ROW
  };
  return all;
}

std::span<const LatheRuntimeKernelTable* const> kernel_tables() {
  static const std::vector<const LatheRuntimeKernelTable*> tables = [] {
    std::vector<const LatheRuntimeKernelTable*> all;
    for (const KernelFamily& family : kernel_families()) all.push_back(family.table);
    return all;
  }();
  return tables;
}

}  // namespace lathe::driver
