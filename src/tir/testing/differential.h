// Differential tests: a program and what a pass made of it, run by the interpreter on the same random data.
#pragma once

#include "tir/interpret/interpret.h"
#include "tir/passes/passes.h"

namespace lathe::tir::testing {

// Arguments for a function whose shapes are constant but for `symbols`: random small values where a buffer is read,
// uninitialised memory where it is only written.
std::vector<TensorBuffer> random_arguments(const Function& function, uint64_t seed,
                                           const std::map<std::string, int64_t>& symbols = {});

// The scalar arguments of a lowered function: those of the original, then the symbols its shapes bind.
std::vector<int64_t> lowered_scalars(const Function& original, const std::map<std::string, int64_t>& symbols);

// Runs both on the same arguments. Empty when both succeed and every byte and every initialised bit agrees, else what
// differs. When the first already fails, that is its diagnostic (prefixed "invalid: "). Tensorized blocks find their
// descriptions in `context`, calls their functions in `module`. With a tolerance, floats may differ by so much of the
// larger one, or of one.
std::string difference(const Function& before, const Function& after, uint64_t seed,
                       const std::map<std::string, int64_t>& symbols = {}, const Context* context = nullptr,
                       double tolerance = 0, const IRModule* module = nullptr);

}  // namespace lathe::tir::testing
