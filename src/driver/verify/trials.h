// What a model is tried on: sizes for its symbolic dimensions, and random inputs of them.
#pragma once

#include "driver/interpreted.h"

namespace lathe::driver {

using Dims = std::map<std::string, int64_t>;

// What the symbolic dimensions of the inputs are in each trial: sizes that hurt (one, a prime, a vector and a tail) and
// those told to be likely, as far as they are legal; each symbol has another of them each time. One trial without
// symbols.
std::vector<Dims> trials_of(const ir::IRModule& module);
// Diagnostic: verify-unknown-shape.
support::Result<std::vector<ir::TensorData>> random_inputs(const Signature& signature, const Dims& dims, uint64_t seed);

}  // namespace lathe::driver
