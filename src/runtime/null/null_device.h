// The null device's record, for tests.
#pragma once

#include "runtime/core/device.h"

namespace lathe::runtime {

// What a queue of the null device was asked for since it was created.
struct NullRecord {
  uint64_t allocations, releases, copies, launches, waits, pending;
  const char* last_launch;  // the name of the last kernel, or null
};
NullRecord null_record(const Queue* queue);

}  // namespace lathe::runtime
