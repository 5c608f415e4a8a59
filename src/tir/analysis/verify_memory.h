// Whether code that runs on the host touches a device's memory.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir {

// Whether a target, as text ("cuda -arch=sm_80", {"kind": "cuda"} as JSON) or as a map with a "kind", has memory of its
// own that its host cannot reach: the kinds of GPUs.
bool has_device_memory(const Value& target);

// False where a function whose attribute "target" names such a device loads or stores, outside of its threads (loops
// bound to threadIdx or blockIdx, attributes "thread_extent"), an element of a parameter or of another buffer of scope
// global. A function for a processor, one without a target and a device's own kernel (attribute "calling_conv" 2) do as
// they like. An address alone touches nothing.
bool verify_memory(const PrimFunc& function);

}  // namespace lathe::tir
