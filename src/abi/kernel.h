// The calling convention of a compiled kernel.
//
// `buffers` are the base addresses of compact row-major tensors in the order the program gives them: inputs, then
// outputs, then scratch. An address is aligned to its element type; storage planned by the program has at least the
// alignment the plan says, a caller's tensor may not. An empty tensor still has a readable address that is not null.
// `scalars` are the symbolic dims and shape scalars of the call.
//
// The kernel writes only its outputs and scratch, keeps no state of its own, and gives the same bits for every number
// of threads. It returns 0, or the code it gave to services->raise_error(call_state, code, message, node).
#pragma once

#include "services.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t (*LatheKernel)(const LatheServices* services, void* call_state, void* const* buffers,
                               const int64_t* scalars);

#ifdef __cplusplus
}
#endif
