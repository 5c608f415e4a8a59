// What a scheduled function costs: seconds, predicted from its loops and from what the machine can do. Programs are
// compared by it without being run; bench and `lathe bench --profile` hold it against times.
#pragma once

#include "schedule/cost/traffic.h"
#include "target/target.h"

namespace lathe::schedule {

// What a machine can do, measured or supposed.
struct Rates {
  double operations_per_second = 0;  // float32, of all threads; a multiply-add counts as two
  struct Level {
    double bytes = 0;             // of the level; 0: without limit
    double bytes_per_second = 0;  // read from it, by all threads
  };
  std::vector<Level> levels;  // nearest first
  int threads = 1;
};

// All in seconds. The parts overlap: the whole is the longest of the first three, and what nothing overlaps with.
struct Cost {
  double arithmetic = 0;  // the vector units' work
  double access = 0;      // loads and stores, as if all hit the nearest level
  double movement = 0;    // bytes from the levels behind, each at its bandwidth
  double latency = 0;     // sums that wait for themselves: too few of them run at once
  double overhead = 0;    // loops, threads
  double seconds() const { return std::max({arithmetic, access, movement, latency}) + overhead; }
};

// The cost of a function whose loops have their final kinds, at the latest before its blocks are lowered. Nothing where
// an extent is not a constant. docs/rules.md has the model on one page.
std::optional<Cost> predict(const tir::PrimFunc& function, const target::Target& target, const Rates& rates);

}  // namespace lathe::schedule
