// Recurrences: tensors whose slices are computed from earlier slices of the same tensors.
#pragma once

#include "te/tensor.h"

namespace lathe::te {

// One state of a recurrence over the first dimension, of T steps in all. `init` [t0, …] gives its first t0 steps;
// `update` [T, …] computes step t from steps before t of `state` placeholders, and from other tensors; `state` [T, …]
// is the placeholder that stands for the result.
struct ScanState {
  Tensor init, update, state;
};

// The states' tensors, of all T steps: a block a state for what `init` gives, then blocks with a scan axis, step by
// step. Diagnostics: te-scan where shapes do not fit, a step reads one that is not before it, or an update reads
// another computed tensor that depends on the state.
std::vector<Tensor> scan(const std::vector<ScanState>& states, const std::string& name = "scan");

}  // namespace lathe::te
