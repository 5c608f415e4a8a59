#include "support/lifetimes.h"

#include <gtest/gtest.h>

#include <random>

namespace lathe::support {
namespace {

TEST(lifetimes, share_memory_where_one_ends_before_the_other_begins) {
  const std::vector<Lifetime> things = {{100, 0, 1}, {60, 2, 3}, {30, 1, 2}};
  const Layout layout = place_by_size(things, 16);
  EXPECT_EQ(layout.offsets, (std::vector<int64_t>{0, 0, 112}));
  EXPECT_EQ(layout.size, 144);
  EXPECT_EQ(place_by_size({}, 16).size, 0);
}

TEST(lifetimes, that_meet_never_overlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> things(1 + random() % 12);
    for (Lifetime& one : things) {
      one.size = 1 + static_cast<int64_t>(random() % 300);
      one.first = static_cast<int>(random() % 10);
      one.last = one.first + static_cast<int>(random() % 4);
    }
    const Layout layout = place_by_size(things, 8);
    int64_t all = 0;
    for (size_t i = 0; i < things.size(); ++i) {
      all += aligned(things[i].size, 8);
      EXPECT_EQ(layout.offsets[i] % 8, 0);
      EXPECT_LE(layout.offsets[i] + things[i].size, layout.size);
      for (size_t j = 0; j < i; ++j) {
        const bool meet = things[i].first <= things[j].last && things[j].first <= things[i].last;
        const bool apart = layout.offsets[i] + things[i].size <= layout.offsets[j] ||
                           layout.offsets[j] + things[j].size <= layout.offsets[i];
        EXPECT_TRUE(!meet || apart) << round << ": " << i << " and " << j;
      }
    }
    EXPECT_LE(layout.size, all);
  }
}

// Each in the smallest gap between those that live when it does, by a look at all of them.
std::vector<int64_t> offsets_by_looking_at_all(const std::vector<Lifetime>& things, int64_t alignment) {
  std::vector<size_t> order(things.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto size_of = [&](size_t i) { return aligned(things[i].size, alignment); };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return size_of(a) > size_of(b); });
  std::vector<int64_t> offsets(things.size());
  std::vector<std::pair<int64_t, size_t>> placed;
  for (const size_t i : order) {
    std::sort(placed.begin(), placed.end());
    int64_t best = -1, best_gap = 0, end = 0;
    for (const auto& [offset, other] : placed) {
      if (things[i].last < things[other].first || things[other].last < things[i].first) continue;
      const int64_t gap = offset - end;
      if (gap >= size_of(i) && (best < 0 || gap < best_gap)) best = end, best_gap = gap;
      end = std::max(end, offset + size_of(other));
    }
    offsets[i] = best < 0 ? end : best;
    placed.emplace_back(offsets[i], i);
  }
  return offsets;
}

TEST(lifetimes, of_every_length_and_at_every_step_are_found) {
  std::mt19937 random(9);
  for (int round = 0; round < 300; ++round) {
    const int steps = 1 + static_cast<int>(random() % 60), longest = 1 + static_cast<int>(random() % 60);
    std::vector<Lifetime> things(random() % 50);
    for (Lifetime& one : things) {
      one.size = static_cast<int64_t>(random() % 200);
      one.first = static_cast<int>(random() % steps) * 1000 - 30000;
      one.last = one.first + static_cast<int>(random() % longest) * 500;
    }
    EXPECT_EQ(place_by_size(things, 16).offsets, offsets_by_looking_at_all(things, 16)) << round;
  }
}

}  // namespace
}  // namespace lathe::support
