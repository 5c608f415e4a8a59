#include "support/lifetimes.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace lathe::support {
namespace {

// Things by the steps in which they live. Of many short lives, those that meet one are found without a look at the
// others: those alive at its first step, by a segment tree (de Berg et al., "Computational Geometry", 10.3), and those
// that begin after it.
class Alive {
 public:
  explicit Alive(std::span<const Lifetime> things) : things_(things) {
    for (const Lifetime& thing : things) steps_.insert(steps_.end(), {thing.first, thing.last});
    std::sort(steps_.begin(), steps_.end());
    steps_.erase(std::unique(steps_.begin(), steps_.end()), steps_.end());
    leaves_ = std::bit_ceil(std::max<size_t>(steps_.size(), 1));
    nodes_.resize(2 * leaves_);
    beginning_.resize(steps_.size());
  }

  void add(size_t thing) {
    const size_t first = at(things_[thing].first);
    size_t low = leaves_ + first, high = leaves_ + at(things_[thing].last) + 1;
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2) nodes_[low++].push_back(thing);
      if (high % 2) nodes_[--high].push_back(thing);
    }
    beginning_[first].push_back(thing);
  }

  // Those that live in a step in which `thing` does, each once.
  void meeting(size_t thing, std::vector<size_t>& met) const {
    const size_t first = at(things_[thing].first), last = at(things_[thing].last);
    met.clear();
    for (size_t node = leaves_ + first; node > 0; node /= 2)
      met.insert(met.end(), nodes_[node].begin(), nodes_[node].end());
    for (size_t step = first + 1; step <= last; ++step)
      met.insert(met.end(), beginning_[step].begin(), beginning_[step].end());
  }

 private:
  size_t at(int step) const {
    return static_cast<size_t>(std::lower_bound(steps_.begin(), steps_.end(), step) - steps_.begin());
  }

  std::span<const Lifetime> things_;
  std::vector<int> steps_;  // those in which something begins or ends
  size_t leaves_ = 1;
  std::vector<std::vector<size_t>> nodes_;      // the tree; 1 is its root, 2n and 2n + 1 are below n
  std::vector<std::vector<size_t>> beginning_;  // by step
};

}  // namespace

Layout place_by_size(std::span<const Lifetime> things, int64_t alignment) {
  std::vector<size_t> order(things.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto size_of = [&](size_t i) { return aligned(things[i].size, alignment); };
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return size_of(a) != size_of(b) ? size_of(a) > size_of(b) : a < b; });

  Layout layout{std::vector<int64_t>(things.size()), 0};
  Alive placed(things);
  std::vector<size_t> met;
  for (const size_t i : order) {
    const int64_t size = size_of(i);
    placed.meeting(i, met);
    std::sort(met.begin(), met.end(), [&](size_t a, size_t b) {
      return layout.offsets[a] != layout.offsets[b] ? layout.offsets[a] < layout.offsets[b] : a < b;
    });
    // The smallest gap among those alive at the same time that is large enough.
    int64_t best = -1, best_gap = std::numeric_limits<int64_t>::max(), end = 0;
    for (const size_t other : met) {
      const int64_t gap = layout.offsets[other] - end;
      if (gap >= size && gap < best_gap) {
        best = end;
        best_gap = gap;
      }
      end = std::max(end, layout.offsets[other] + size_of(other));
    }
    layout.offsets[i] = best >= 0 ? best : end;
    layout.size = std::max(layout.size, layout.offsets[i] + size);
    placed.add(i);
  }
  return layout;
}

}  // namespace lathe::support
