// The kernels under the names that artifacts link them by, and the family's table.
#include "runtime/kernels/strings/kernels.h"

// Weak: several models in one program have one copy.
#define LATHE_STRING_KERNEL(name)                                                                                      \
  extern "C"                                                                                                           \
      __attribute__((weak, visibility("default"))) int32_t lathe_kernel_strings_##name(const LatheRuntimeCall* call) { \
    return lathe::strings::name(call);                                                                                 \
  }
#include "runtime/kernels/strings/kernels.def"
#undef LATHE_STRING_KERNEL

namespace {

constexpr LatheRuntimeKernelEntry entries[] = {
#define LATHE_STRING_KERNEL(name) {"strings." #name, lathe::strings::name},
#include "runtime/kernels/strings/kernels.def"
#undef LATHE_STRING_KERNEL
};

}  // namespace

extern "C" const LatheRuntimeKernelTable lathe_runtime_kernels_strings = {
    LATHE_VALUE_TABLE_VERSION, sizeof(LatheRuntimeKernelTable), "strings", entries,
    sizeof(entries) / sizeof(entries[0])};
