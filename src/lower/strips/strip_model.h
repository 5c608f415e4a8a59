// What running kernels strip by strip saves and costs.
#pragma once

#include <cstdint>
#include <vector>

#include "target/target.h"

namespace lathe::lower {

// One kernel of a run, and a strip of it from the middle. Sizes in bytes.
struct StripStep {
  int64_t moved = 0;            // what it reads and writes of what goes by rows, of all strips
  int64_t written = 0;          // of these: its result
  int64_t held = 0;             // of one strip: its result's rows and those that it reads
  int64_t copied = 0;           // of one strip: its result's rows that the strip before computed
  std::vector<size_t> readers;  // the steps of the run that read the result
  bool is_kept = false;         // the result is needed behind the run
  int64_t same = 0;             // what each strip reads alike: weights
  double operations = 0;
};

// In the same bytes as what strips save.
struct StripCosts {
  double call = 1 << 17;     // of a kernel, one more
  double kernel = 1 << 20;   // one more to compile
  double nothing = 1 << 19;  // what has to be saved at least
};

// How far what a kernel touches is: 0 where it is half of the second caches, 1 where it is twice of them, and so on by
// the logarithm, at most 3 (memory). The second caches are those of half of the cores: a run may have fewer threads,
// which each work on a part.
double distance_in_caches(int64_t bytes, const target::Target& target);

// What `strips` strips save, in bytes from the cache behind the cores' own ones; below zero: they cost. A byte between
// two kernels of the run costs less, the nearer what a kernel touches is; less than that in a kernel that has more to
// compute than five operations for each byte. Against it stand rows that are copied from the strip before, weights that
// the nearest cache does not hold, which each strip reads again, and the kernels' calls.
double saved_by_strips(const std::vector<StripStep>& run, int64_t strips, const target::Target& target,
                       const StripCosts& costs = {});

inline constexpr int64_t most_strips = 32;

}  // namespace lathe::lower
