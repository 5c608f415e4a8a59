// The kernels, one row each in kernels.def. Strings go in and out as numbers (abi/runtime_kernel.h).
#pragma once

#include "runtime/kernels/strings/call.h"

namespace lathe::strings {

#define LATHE_STRING_KERNEL(name) int32_t name(const LatheRuntimeCall* call);
#include "runtime/kernels/strings/kernels.def"
#undef LATHE_STRING_KERNEL

}  // namespace lathe::strings
