// What splitting a batch saves and costs, in bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "target/target.h"

namespace lathe::lower {

// One kernel of a run, over the whole batch.
struct BatchStep {
  int64_t moved = 0;    // bytes that it reads and writes image by image
  int64_t written = 0;  // of these: its results
  int64_t reads = 0;    // how often other kernels of the run read a result
  size_t last_use = 0;  // the step that reads it last; never in the run: a number beyond it
  int64_t same = 0;     // bytes that it reads for every image alike: weights
};

struct BatchSplit {
  size_t steps = 0;    // of the run, from its beginning; 0: none are worth it
  int64_t pieces = 1;  // of the batch
};

// The best split of a run for a batch of `rows`. A byte of a result that is read within the split costs less, the
// nearer it still is: in units of what it takes to read a byte of weights, which are asked for ahead, the logarithm
// (base 2) of how many times larger than four second caches all is that the kernel moves, at most 4. Against it,
// weights that the nearest cache does not hold are read again for each piece. At most 16 pieces, all equal.
BatchSplit best_batch_split(const std::vector<BatchStep>& run, int64_t rows, const target::Target& target);

}  // namespace lathe::lower
