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

// A register-only loop of multiply-adds, compiled once for a target: a machine that others share is not the same from
// one moment to the next, and a time counts only between two equal readings.
class PeakProbe {
 public:
  static support::Result<PeakProbe> create(const target::Target& target, int threads);
  PeakProbe(PeakProbe&&) noexcept;
  ~PeakProbe();
  // float32 operations a second now, the best of a few runs: under a millisecond each.
  support::Result<double> read() const;

 private:
  struct State;
  explicit PeakProbe(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The peak is the caller's; sums over memory of each level's size are compiled, and the best of several runs is taken:
// about a second. Targets of other machines fail when they run.
support::Result<MachineLimits> measure_machine(const target::Target& target, int threads, double peak);

}  // namespace lathe::driver
