#include <gtest/gtest.h>

#include "schedule/testing/programs.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

// The update of a product, without its init, at each loop of its nest.
TEST(cache_inplace, copies_in_and_back_what_an_update_touches) {
  const Function original = testing::matmul(int64(5), int64(6), int64(4));
  for (const char* scope : {"local", "global"}) {
    Schedule sch = Schedule::create(original).value_or_throw();
    const BlockRV update = sch.get_block("matmul").value_or_throw();
    ASSERT_TRUE(sch.decompose_reduction(update, sch.get_loops(update).value_or_throw()[0]));
    const auto blocks = sch.cache_inplace(update, 0, scope);
    ASSERT_TRUE(blocks.ok()) << support::render(blocks.diagnostics());
    EXPECT_EQ(tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3), "");
  }
}

TEST(cache_inplace, refuses_a_block_that_writes_before_it_reads) {
  Schedule sch = Schedule::create(testing::matmul(int64(5), int64(6), int64(4))).value_or_throw();
  const auto refused = sch.cache_inplace(sch.get_block("matmul").value_or_throw(), 0, "local");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics()[0].code.name, "schedule-region");
}

}  // namespace
}  // namespace lathe::schedule
