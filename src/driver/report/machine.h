// What this machine can do now, measured: the limits that times are held against.
#pragma once

#include "target/target.h"

namespace lathe::driver {

struct MemoryLevel {
  std::string name;             // "L2", "memory"
  int64_t bytes = 0;            // of all threads together; 0: without limit
  double bytes_per_second = 0;  // read, all threads together
};

struct MachineLimits {
  double operations_per_second = 0;  // float32, a multiply-add counted as two
  std::vector<MemoryLevel> levels;   // nearest first, the last without limit

  // The nearest level that holds so many bytes.
  const MemoryLevel& level_of(double bytes) const;
};

// Compiles tensor programs for the target, a register-only loop of multiply-adds and a sum over memory of each level's
// size, and takes the best of several runs: about a second. Targets of other machines fail when they run.
support::Result<MachineLimits> measure_machine(const target::Target& target, int threads);

}  // namespace lathe::driver
