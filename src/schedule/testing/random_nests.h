// Random loop programs: iterations that may depend on one another (updates in place, stencils over time, several blocks
// in one nest, strided and folded writes), bodies that are more than a store (ifs, while loops, lets, memory of their
// own, elements found by numbers), predicates, reductions, symbolic extents, integers and floats.
#pragma once

#include <map>
#include <random>

#include "schedule/testing/programs.h"

namespace lathe::schedule::testing {

struct RandomNests {
  Function function;
  // Values to run it with: one map for each run.
  std::vector<std::map<std::string, int64_t>> symbols;
  DType element = DType::int_(32);  // what it computes with; floats round: another order of a sum is another result
};

// One to three nests, the first of the kind wished for where there is one of that name.
RandomNests random_nests(std::mt19937& random, std::string_view wished = {});

}  // namespace lathe::schedule::testing
