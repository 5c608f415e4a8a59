// Calls of generated code. The sanitizer of calls reads the bytes before a function for its type; generated code has
// none there, and its page may be the first of a mapping.
#pragma once

#include "abi/kernel.h"

namespace lathe::abi {

[[clang::no_sanitize("function")]] inline int32_t call_kernel(LatheKernel kernel, const LatheServices* services,
                                                              void* call_state, void* const* buffers,
                                                              const int64_t* scalars) {
  return kernel(services, call_state, buffers, scalars);
}

[[clang::no_sanitize("function")]] inline void call_body(LatheParallelBody body, void* closure, int64_t begin,
                                                         int64_t end) {
  body(closure, begin, end);
}

}  // namespace lathe::abi
