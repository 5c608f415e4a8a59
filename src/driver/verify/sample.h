// A tensor program that computes some elements of its outputs instead of all: what makes the interpreter bearable as
// the oracle of large operators.
#pragma once

#include "tir/stmt.h"

namespace lathe::driver {

// About how many statements the function runs, where its shapes are known; symbols count as `unknown`.
double operations_of(const tir::PrimFunc& function, int64_t unknown = 8);

struct SampledProgram {
  tir::Function function;   // one int64 [samples, rank] buffer of indices more, after the outputs, for each output
  bool is_sampled = false;  // false: the function is as it was; it has a shape that cannot be sampled
};

// The block-level function with the loop nest of each output (the last `outputs` buffers) over `samples` points
// instead of all: the points' indices are given in the additional buffers. Intermediate tensors stay whole.
SampledProgram sample_outputs(const tir::Function& function, size_t outputs, int64_t samples);

}  // namespace lathe::driver
