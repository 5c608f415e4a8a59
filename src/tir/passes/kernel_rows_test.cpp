// The passes one after the other, in the order of the pipeline's page.
#include <gtest/gtest.h>

#include "driver/pipeline.h"
#include "tir/testing/differential.h"
#include "tir/testing/programs.h"
#include "tir/testing/random_program.h"
#include "tir/verify.h"

namespace lathe::tir {
namespace {

using driver::kernel_rows;
using testing::difference;

// Runs the rows one by one and compares after each.
void expect_equal_after_each_row(const Function& f, const std::map<std::string, int64_t>& symbols = {}) {
  IRModule module;
  module.set("main", f);
  ASSERT_EQ(difference(f, f, 7, symbols), "");
  for (const PassRow& row : kernel_rows()) {
    auto result = row.run(module, {});
    ASSERT_TRUE(result.ok()) << row.name << ": " << support::render(result.diagnostics());
    module = *result;
    EXPECT_EQ(difference(f, module.find_as<PrimFunc>("main"), 7, symbols), "") << "after " << row.name;
  }
}

TEST(kernel_rows, keep_the_meaning_of_a_tiled_matmul) {
  for (const int64_t n : {1, 5, 16, 17})
    for (const ForKind kind : {ForKind::serial, ForKind::vectorized, ForKind::unrolled})
      expect_equal_after_each_row(testing::matmul(int64(3), int64(n), int64(4), 8, kind));
}

TEST(kernel_rows, keep_the_meaning_for_symbolic_shapes) {
  const Var n = size_var("n"), m = size_var("m");
  for (const int64_t value : {0, 1, 7, 16})
    expect_equal_after_each_row(testing::matmul(m, n, int64(3), 4, ForKind::vectorized), {{"n", value}, {"m", 2}});
}

TEST(kernel_rows, keep_the_meaning_of_padding) {
  for (const int64_t n : {1, 2, 13, 70})
    for (const ForKind kind : {ForKind::serial, ForKind::vectorized, ForKind::parallel, ForKind::unrolled})
      expect_equal_after_each_row(testing::padded_stencil(n, kind));
}

TEST(kernel_rows, run_in_an_order_that_fits_their_declarations) {
  EXPECT_TRUE(driver::lower_to_kernel(testing::padded_stencil(5, ForKind::vectorized)).ok());
}

// What became of random programs: how many were run, and of those how many every row accepted.
struct Tally {
  int run = 0, invalid = 0, refused = 0, accepted = 0;
};

TEST(kernel_rows, keep_the_meaning_of_random_programs) {
  Tally tally;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Function f = testing::random_program(seed);
    ++tally.run;
    const std::string invalid = difference(f, f, seed);
    if (!invalid.empty()) {
      ++tally.invalid;
      ADD_FAILURE() << "seed " << seed << ": " << invalid;
      continue;
    }
    ASSERT_EQ(support::render(verify(f)), "") << "seed " << seed;
    IRModule module;
    module.set("main", f);
    bool accepted = true;
    ir::RowsRun passes;
    for (const PassRow& row : kernel_rows()) {
      auto result = row.run(module, {});
      if (!result.ok()) {
        accepted = false;
        break;
      }
      module = *result;
      const Function now = module.find_as<PrimFunc>("main");
      ASSERT_EQ(difference(f, now, seed), "") << "seed " << seed << " after " << row.name;
      passes.insert(row.name);
      const auto found = verify(now, passes);
      ASSERT_TRUE(found.empty()) << "seed " << seed << " after " << row.name << ": " << support::render(found);
    }
    ++(accepted ? tally.accepted : tally.refused);
  }
  std::printf("random programs: %d run, %d accepted by every row, %d refused\n", tally.run, tally.accepted,
              tally.refused);
  EXPECT_GT(tally.accepted, tally.run * 9 / 10);
}

}  // namespace
}  // namespace lathe::tir
