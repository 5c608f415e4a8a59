// The kernels, one row each in kernels.def.
#pragma once

#include "abi/runtime_kernel.h"

namespace lathe::images {

#define LATHE_IMAGE_KERNEL(name) int32_t name(const LatheRuntimeCall* call);
#include "runtime/kernels/images/kernels.def"
#undef LATHE_IMAGE_KERNEL

}  // namespace lathe::images
