// The process's worker threads. One pool for all contexts, so that several models do not fight over the cores; workers
// start when first needed and sleep between regions.
#pragma once

#include <cstdint>

#include "abi/services.h"
#include "runtime/cpu/float_mode.h"

namespace lathe::runtime {

struct Region {
  LatheParallelBody body;
  void* closure;
  int64_t extent;  // iterations
  int64_t grain;   // the fewest a thread gets
  int32_t threads;
  FloatControl float_control;
};

// Runs the body over [0, extent) in at most `threads` equal parts, part i always the same range, and returns when all
// are done. Inline, as one part, where the region is nested in another, or while another caller has the workers: with
// several callers at once the cores are busy anyway.
void run_region(const Region& region);

// Iterations of part `index` of `parts`.
struct Part {
  int64_t begin, end;
};
Part part_of(int64_t extent, int32_t parts, int32_t index);
int32_t part_count(int64_t extent, int64_t grain, int32_t threads);

// Workers alive in this process, for tests.
int32_t worker_count();

}  // namespace lathe::runtime
