// Random tensor programs, with shapes that hurt: over int32, so that regrouping a reduction changes no bit, or floats.
#pragma once

#include <random>

#include "schedule/testing/programs.h"

namespace lathe::schedule::testing {

// Two to five blocks: elementwise with broadcast, shift or transposition, padding, reductions over one or two axes.
struct RandomProgramOptions {
  // An output is made of every value that no block reads. On what nobody reads, every step would be right.
  bool reads_everything = false;
  DType element = DType::int_(32);
  // What the second block does, where it can: "padding", "reduction", "window". Empty: anything.
  std::string wished;
};
Function random_program(std::mt19937& random, const RandomProgramOptions& options = {});

}  // namespace lathe::schedule::testing
