#include <gtest/gtest.h>

#include "schedule/schedule.h"
#include "script/parse.h"
#include "tir/script/dialect.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

// Inside a block, what is fixed by the block around keeps its value where it moves: all rows are not done again for
// each.
TEST(compute_at, keeps_what_a_block_around_fixes) {
  const script::Dialect* dialects[] = {&tir::script_dialect()};
  const Function original = ir::cast<PrimFunc>(NodeRef(script::parse_function({"test", R"(
@T.prim_func
def main(X: T.Buffer((3, 5), "int32"), Y: T.Buffer((3, 5), "int32")):
    R = T.alloc_buffer((5,), "int32")
    for i in range(3):
        with T.block("row"):
            vi = T.axis.spatial(3, i)
            T.reads(X[vi, 0:5])
            T.writes(R[0:5], Y[vi, 0:5])
            for j in range(5):
                with T.block("triple"):
                    va = T.axis.spatial(3, vi)
                    vj = T.axis.spatial(5, j)
                    R[vj] = X[va, vj] * 3
            for k in range(5):
                with T.block("turn"):
                    vb = T.axis.spatial(3, vi)
                    vk = T.axis.spatial(5, k)
                    Y[vb, vk] = R[4 - vk] + 1
)"},
                                                                              dialects)
                                                           .value_or_throw()));
  Schedule sch = Schedule::create(original).value_or_throw();
  const LoopRV k = sch.get_loops(sch.get_block("turn").value_or_throw()).value_or_throw().at(0);
  const Status moved = sch.compute_at(sch.get_block("triple").value_or_throw(), k);
  ASSERT_TRUE(moved.ok()) << support::render(moved.diagnostics());
  EXPECT_EQ(tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3), "");
  EXPECT_TRUE(sch.get_loops(sch.get_block("triple").value_or_throw()).value_or_throw().size() == 1);
}

}  // namespace
}  // namespace lathe::schedule
