// The kernels under the names that artifacts link them by, and the family's table.
#include "runtime/kernels/images/kernels.h"

// Weak: several models in one program have one copy.
#define LATHE_IMAGE_KERNEL(name)                                                                                      \
  extern "C"                                                                                                          \
      __attribute__((weak, visibility("default"))) int32_t lathe_kernel_images_##name(const LatheRuntimeCall* call) { \
    return lathe::images::name(call);                                                                                 \
  }
#include "runtime/kernels/images/kernels.def"
#undef LATHE_IMAGE_KERNEL

namespace {

constexpr LatheRuntimeKernelEntry entries[] = {
#define LATHE_IMAGE_KERNEL(name) {"images." #name, lathe::images::name},
#include "runtime/kernels/images/kernels.def"
#undef LATHE_IMAGE_KERNEL
};

}  // namespace

extern "C" const LatheRuntimeKernelTable lathe_runtime_kernels_images = {LATHE_VALUE_TABLE_VERSION,
                                                                         sizeof(LatheRuntimeKernelTable), "images",
                                                                         entries, sizeof(entries) / sizeof(entries[0])};
