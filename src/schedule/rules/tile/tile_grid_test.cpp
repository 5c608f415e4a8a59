// Threads that share the tiles of all cuts of the lanes.
#include <gtest/gtest.h>

#include "schedule/testing/programs.h"
#include "schedule/testing/rule_check.h"

namespace lathe::schedule {
namespace {

using testing::machine;

// Extents of the loops that threads share; no panels are copied first.
std::vector<int64_t> shared_extents(const Function& f, const target::Target& target,
                                    std::map<std::string, int64_t> decisions = {}) {
  decisions["gemm.panels"] = 0;
  return testing::parallel_extents(f, target, decisions);
}

target::Target with_cores(int cores) {
  target::Target target = machine(512, 32);
  target.cores = cores;
  target.caches = {{.level = 1, .bytes = 48 << 10}, {.level = 2, .bytes = 2 << 20}};
  return target;
}

TEST(tile_grid, is_one_loop_over_tiles_of_both_heights) {
  const Function f = testing::matmul(int64(49), int64(160), int64(960));
  EXPECT_EQ(shared_extents(f, with_cores(2)), std::vector<int64_t>{20}) << "four tiles of five cuts";
  EXPECT_EQ(shared_extents(f, with_cores(2), {{"gemm.grid", 0}}), std::vector<int64_t>{5});
  EXPECT_EQ(shared_extents(f, with_cores(5)), std::vector<int64_t>{5}) << "a cut for each";
}

TEST(tile_grid, is_for_cuts_that_cores_cannot_share_evenly) {
  const auto pieces = [](int cores, int64_t m, int64_t n, int64_t k) {
    return shared_extents(testing::matmul(int64(m), int64(n), int64(k)), with_cores(cores));
  };
  EXPECT_EQ(pieces(2, 128, 768, 768), std::vector<int64_t>{24}) << "cuts";
  EXPECT_EQ(pieces(16, 128, 768, 768), std::vector<int64_t>{240}) << "ten tiles of each of 24 cuts";
  EXPECT_EQ(pieces(16, 1, 768, 768), std::vector<int64_t>{12}) << "one row: cuts alone";
}

TEST(tile_grid, knows_what_a_narrower_last_cut_leaves_idle) {
  const auto pieces = [](int64_t m, int64_t n, int64_t k) {
    return shared_extents(testing::matmul(int64(m), int64(n), int64(k)), with_cores(2));
  };
  EXPECT_EQ(pieces(198, 100, 900), std::vector<int64_t>{2}) << "three cuts of 32 and one of four: halves of the rows";
  EXPECT_EQ(pieces(197, 100, 900), (std::vector<int64_t>{45, 15})) << "tiles of each cut";
  EXPECT_EQ(pieces(197, 128, 900), std::vector<int64_t>{4}) << "four cuts";
}

TEST(tile_grid, computes_the_same) {
  for (const auto& [bits, registers] : testing::machines)
    for (const auto& [m, n, k] :
         std::vector<std::array<int64_t, 3>>{{24, 64, 4}, {29, 96, 3}, {49, 160, 5}, {15, 35, 4}, {17, 64, 300}})
      for (const bool dense : {false, true}) {
        const Function f =
            dense ? testing::dense(int64(m), int64(n), int64(k)) : testing::matmul(int64(m), int64(n), int64(k));
        const std::map<std::string, int64_t> decisions{{"gemm.rows_first", 0}, {"gemm.share", 1}, {"gemm.grid", 1}};
        EXPECT_EQ(testing::scheduled(f, machine(bits, registers), 1e-5, {}, decisions), "gemm")
            << testing::last_remarks << bits << " bits, " << m << "x" << n << "x" << k;
      }
}

TEST(tile_grid, takes_the_rows_of_images_in_turn) {
  for (const auto& [bits, registers] : testing::machines)
    for (const int64_t width : {5, 7, 16}) {
      const testing::ConvShape shape{.channels = 2, .height = 7, .width = width, .filters = 33, .lanes = bits / 32};
      const std::map<std::string, int64_t> decisions{{"conv.rows_first", 0}, {"conv.share", 1}, {"conv.grid", 1}};
      EXPECT_EQ(testing::scheduled(testing::conv2d(shape), machine(bits, registers), 1e-5, {}, decisions), "conv")
          << testing::last_remarks << bits << " bits, width " << width;
    }
}

}  // namespace
}  // namespace lathe::schedule
