#include "driver/report/predictions.h"

#include <gtest/gtest.h>

namespace lathe::driver {
namespace {

TEST(rank_correlations, compare_orders_rule_by_rule) {
  const auto found = rank_correlations({{"gemm", 1, 2},
                                        {"gemm", 2, 30},
                                        {"gemm", 4, 31},  // the same order
                                        {"pool", 1, 3},
                                        {"pool", 2, 2},
                                        {"pool", 3, 1},  // the other way round
                                        {"conv", 1, 1},
                                        {"conv", 2, 2},  // too few
                                        {"flat", 5, 1},
                                        {"flat", 5, 2},
                                        {"flat", 5, 3}});  // no order at all
  std::map<std::string, RankCorrelation> by_rule;
  for (const RankCorrelation& one : found) by_rule[one.rule] = one;
  EXPECT_EQ(by_rule.size(), 4u) << "gemm, pool, flat, and all";
  EXPECT_DOUBLE_EQ(by_rule["gemm"].value, 1);
  EXPECT_DOUBLE_EQ(by_rule["pool"].value, -1);
  EXPECT_DOUBLE_EQ(by_rule["flat"].value, 0);
  EXPECT_EQ(by_rule["all"].kernels, 11u);
  EXPECT_NEAR(by_rule["gemm"].ratio, std::cbrt(1.0 / 2 * 2 / 30 * 4 / 31), 1e-12);
}

TEST(rank_correlations, share_the_ranks_of_equal_values) {
  // Ranks 0, 1.5, 1.5, 3 and 0, 1, 2, 3: 4.5 / sqrt(4.5 * 5).
  const auto found = rank_correlations({{"r", 1, 1}, {"r", 2, 2}, {"r", 2, 3}, {"r", 9, 4}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(found[1].value, 4.5 / std::sqrt(4.5 * 5), 1e-12);
}

TEST(rank_correlations, pass_over_what_has_no_time) {
  EXPECT_TRUE(rank_correlations({{"r", 0, 1}, {"r", 1, 0}, {"r", 1, 1}, {"r", 2, 2}}).empty());
}

}  // namespace
}  // namespace lathe::driver
