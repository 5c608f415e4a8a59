// What a context keeps from one run to the next: values that a run replaces, and tensors that it writes into behind the
// elements that count. A run that fails changes neither.
#pragma once

#include "runtime/core/context.h"

namespace lathe::runtime {

// The states become the last parameters of the main function. Behind set_inputs, whose sizes they must fit.
int32_t set_states_for_run(LatheContext& context);
// After a run: the results that replace states get memory of their own.
int32_t detach_states(LatheContext& context);
// And take their place.
void keep_states(LatheContext& context);

int32_t reset_states(LatheContext& context);
int32_t get_states(LatheContext& context, DLManagedTensor** states, int32_t count);
int32_t set_states(LatheContext& context, const DLTensor* const* states, int32_t count);

}  // namespace lathe::runtime
