#include <gtest/gtest.h>

#include "schedule/testing/programs.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

// B = A + A, then C[i] = B[i], or B's elements in reverse.
Function twice(bool reversed) {
  testing::Builder b;
  const Buffer a = b.input("A", {int64(7)}), middle = b.inner("B", {int64(7)}), c = b.output("C", {int64(7)});
  b.compute("double", middle, [&](const std::vector<Expr>& i) { return load(a, i) + load(a, i); });
  b.compute("copy", c, [&](const std::vector<Expr>& i) { return load(middle, {reversed ? int64(6) - i[0] : i[0]}); });
  return b.build();
}

support::Result<LoopRV> merged(Schedule& sch) {
  const auto loop = [&](const char* block) {
    return sch.get_loops(sch.get_block(block).value_or_throw()).value_or_throw()[0];
  };
  return sch.merge({loop("double"), loop("copy")});
}

TEST(merge, runs_both_bodies_in_one_loop) {
  const Function original = twice(false);
  Schedule sch = Schedule::create(original).value_or_throw();
  ASSERT_TRUE(merged(sch).ok());
  EXPECT_EQ(tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3), "");
}

TEST(merge, refuses_loops_of_which_the_second_needs_all_of_the_first) {
  Schedule sch = Schedule::create(twice(true)).value_or_throw();
  const auto refused = merged(sch);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics()[0].code.name, "schedule-dependence");
}

}  // namespace
}  // namespace lathe::schedule
