// Random loop programs in which iterations may depend on one another: updates in place, stencils over time, several
// blocks in one nest, strided and folded writes, predicates, reductions over two axes, symbolic extents.
#pragma once

#include <map>
#include <random>

#include "schedule/testing/programs.h"

namespace lathe::schedule::testing {

struct RandomNests {
  Function function;
  // Values to run it with: one map for each run.
  std::vector<std::map<std::string, int64_t>> symbols;
};

RandomNests random_nests(std::mt19937& random);

}  // namespace lathe::schedule::testing
