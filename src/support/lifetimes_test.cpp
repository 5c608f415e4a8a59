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

}  // namespace
}  // namespace lathe::support
