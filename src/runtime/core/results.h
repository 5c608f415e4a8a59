// Results of a run on their way to whoever gets them.
#pragma once

#include "runtime/core/context.h"

namespace lathe::runtime {

// Makes result number `index` safe to give away: host memory of its own that no result before it shares.
int32_t detach_result(LatheContext& context, uint32_t index);

// Tensors as the caller frees them, each with a reference to its value: all of them, or none and the error said.
int32_t give_away(LatheValue* const* values, DLManagedTensor** to, uint32_t count);

}  // namespace lathe::runtime
