// What a model is tried on: sizes for its symbolic dimensions, and random inputs of them.
#pragma once

#include "driver/interpreted.h"

namespace lathe::driver {

using Dims = std::map<std::string, int64_t>;

// The symbolic dimensions of the inputs, by name.
std::vector<std::string> symbols_of(const Signature& signature);
// How many trials such a model gets: one without symbols.
size_t trials_of(const std::vector<std::string>& symbols);
// Sizes that hurt: one, a prime, a vector and a tail; each symbol has another of them in each trial.
Dims trial_dims(const std::vector<std::string>& symbols, size_t trial);
// Diagnostic: verify-unknown-shape.
support::Result<std::vector<ir::TensorData>> random_inputs(const Signature& signature, const Dims& dims, uint64_t seed);

}  // namespace lathe::driver
