// Random tensor programs for differential tests: chains of blocks over buffers of awkward shapes (0, 1, primes, tails),
// with predicates, reductions, padding, several dtypes and kinds of loops. The same seed gives the same program.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir::testing {

struct RandomOptions {
  bool loop_kinds = true;  // parallel, vectorized and unrolled loops; else all are serial
  bool splits = true;      // loops split by factors that need a guard, fused and reordered
  bool nesting = true;     // producers inside the loops of their consumer
};

// A valid program: no access out of bounds, nothing read before it is written.
Function random_program(uint64_t seed, const RandomOptions& options = {});

}  // namespace lathe::tir::testing
