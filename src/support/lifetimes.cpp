#include "support/lifetimes.h"

#include <algorithm>
#include <limits>

namespace lathe::support {

Layout place_by_size(std::span<const Lifetime> things, int64_t alignment) {
  std::vector<size_t> order(things.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto size_of = [&](size_t i) { return aligned(things[i].size, alignment); };
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return size_of(a) != size_of(b) ? size_of(a) > size_of(b) : a < b; });

  Layout layout{std::vector<int64_t>(things.size()), 0};
  std::vector<size_t> placed;  // in order of offset
  for (const size_t i : order) {
    const int64_t size = size_of(i);
    // The smallest gap among those alive at the same time that is large enough.
    int64_t best = -1, best_gap = std::numeric_limits<int64_t>::max(), end = 0;
    for (const size_t other : placed) {
      if (things[other].first > things[i].last || things[i].first > things[other].last) continue;
      const int64_t gap = layout.offsets[other] - end;
      if (gap >= size && gap < best_gap) {
        best = end;
        best_gap = gap;
      }
      end = std::max(end, layout.offsets[other] + size_of(other));
    }
    layout.offsets[i] = best >= 0 ? best : end;
    layout.size = std::max(layout.size, layout.offsets[i] + size);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](size_t a, size_t b) { return layout.offsets[a] < layout.offsets[b]; }),
                  i);
  }
  return layout;
}

}  // namespace lathe::support
