// What a caller gives to a run: checked against the signature, it becomes the first parameters of the main function.
#pragma once

#include "runtime/core/context.h"

namespace lathe::runtime {

int32_t set_inputs(LatheContext& context, const RunInputs& inputs);

// Whether sizes are those that the signature promises; symbols are bound, or compared with what they were bound to.
int32_t check_dims(LatheContext& context, const LatheValueInfo& info, const int64_t* shape);
// Whether a tensor is what the signature promises; gives its elements and bytes.
int32_t check_tensor(LatheContext& context, const LatheValueInfo& info, const DLTensor& tensor, int64_t* count,
                     uint64_t* bytes);
bool is_aligned(const void* data, DLDataType dtype);
bool same_dtype(DLDataType a, DLDataType b);

}  // namespace lathe::runtime
