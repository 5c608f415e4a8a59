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
  int64_t grain;   // the fewest a thread takes at a time
  int32_t threads;
  FloatControl float_control;
};

// Runs the body over [0, extent) and returns when all is done. At most `threads` threads have equal shares of it,
// thread i always the same range, so that it finds in its caches what it wrote before; each takes its share in a few
// pieces of at least `grain`, and who is done takes what the others have not begun. So nobody waits for a thread that
// sleeps, or whose core is taken away. Inline, as one piece, where the region is nested in another, or while another
// caller has the workers: with several callers at once the cores are busy anyway.
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
