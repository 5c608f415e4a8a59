// One piece of memory for many things that live for a time each: tensors of a graph, allocations of a kernel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lathe::support {

struct Lifetime {
  int64_t size = 0;
  int first = 0, last = 0;  // the steps at which it is used first and last, both its own
};

struct Layout {
  std::vector<int64_t> offsets;  // one each; things that live at the same time do not overlap
  int64_t size = 0;              // of all together
};

// Offsets that are multiples of `alignment`: greedily, from the largest on, each in the smallest gap that holds it
// (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, section 5).
Layout place_by_size(std::span<const Lifetime> things, int64_t alignment);

// The smallest multiple of `alignment` that is at least `size`.
constexpr int64_t aligned(int64_t size, int64_t alignment) { return (size + alignment - 1) / alignment * alignment; }

}  // namespace lathe::support
