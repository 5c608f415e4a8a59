#include <gtest/gtest.h>

#include "schedule/testing/programs.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

// Tiles that do not divide the rows: the consumer of the last tile stops where the rows do.
TEST(reverse_compute_at, stops_the_consumer_behind_a_tail) {
  for (const char* producer : {"matmul", "bias_add"}) {
    const bool first = producer == std::string("matmul");
    const Function original = testing::dense(int64(8), int64(6), int64(4));
    Schedule sch = Schedule::create(original).value_or_throw();
    const BlockRV block = sch.get_block(producer).value_or_throw();
    const LoopRV rows = sch.get_loops(block).value_or_throw()[0];
    const LoopRV tile = sch.split(rows, {Factor(), int64_t{3}}).value_or_throw()[0];
    const auto placed = sch.reverse_compute_at(sch.get_block(first ? "bias_add" : "relu").value_or_throw(), tile);
    ASSERT_TRUE(placed.ok()) << support::render(placed.diagnostics());
    EXPECT_EQ(tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3), "");
  }
}

}  // namespace
}  // namespace lathe::schedule
