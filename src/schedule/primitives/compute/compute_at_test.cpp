#include <gtest/gtest.h>

#include "schedule/testing/programs.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

// Inside a block, what is fixed by the block around keeps its value where it moves: all rows are not done again for
// each.
TEST(compute_at, keeps_what_a_block_around_fixes) {
  const Function original = testing::from_text(R"(
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
)");
  Schedule sch = Schedule::create(original).value_or_throw();
  const LoopRV k = sch.get_loops(sch.get_block("turn").value_or_throw()).value_or_throw().at(0);
  const Status moved = sch.compute_at(sch.get_block("triple").value_or_throw(), k);
  ASSERT_TRUE(moved.ok()) << support::render(moved.diagnostics());
  EXPECT_EQ(tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3), "");
  EXPECT_TRUE(sch.get_loops(sch.get_block("triple").value_or_throw()).value_or_throw().size() == 1);
}

// An index made of digits, a group and a channel in it: of the groups, only the one that an iteration reads.
TEST(compute_at, computes_the_group_that_is_read) {
  const Function original = testing::from_text(R"(
@T.prim_func
def main(X: T.Buffer((4, 6), "int32"), Y: T.Buffer((24,), "int32")):
    A = T.alloc_buffer((24,), "int32")
    for g, c in T.grid(4, 6):
        with T.block("double"):
            vg, vc = T.axis.remap("SS", [g, c])
            A[vg * 6 + vc] = X[vg, vc] * 2
    for g, c in T.grid(4, 6):
        with T.block("turn"):
            vg, vc = T.axis.remap("SS", [g, c])
            Y[vg * 6 + vc] = A[vg * 6 + 5 - vc]
)");
  Schedule sch = Schedule::create(original).value_or_throw();
  const LoopRV group = sch.get_loops(sch.get_block("turn").value_or_throw()).value_or_throw().at(0);
  const BlockRV moved = sch.get_block("double").value_or_throw();
  const Status status = sch.compute_at(moved, group);
  ASSERT_TRUE(status.ok()) << support::render(status.diagnostics());
  EXPECT_EQ(tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3), "");
  const std::vector<LoopRV> loops = sch.get_loops(moved).value_or_throw();
  ASSERT_EQ(loops.size(), 2U) << "the group's, and that of its channels";
  EXPECT_EQ(as_int(sch.get(loops[1]).value_or_throw()->extent), 6);
}

// A block made of a nest is one writer: its inner block is no other. What is computed is the tiles that are read.
TEST(compute_at, moves_a_block_with_blocks_inside) {
  const Function original = testing::from_text(R"(
@T.prim_func
def main(X: T.Buffer((12,), "int32"), Y: T.Buffer((12,), "int32")):
    A = T.alloc_buffer((12,), "int32")
    for i in range(12):
        with T.block("double"):
            vi = T.axis.spatial(12, i)
            A[vi] = X[vi] * 2
    for i in range(12):
        with T.block("add"):
            vi = T.axis.spatial(12, i)
            Y[vi] = A[vi] + 1
)");
  Schedule sch = Schedule::create(original).value_or_throw();
  const auto loop_of = [&](const char* block) {
    return sch.get_loops(sch.get_block(block).value_or_throw()).value_or_throw().at(0);
  };
  const auto tiles = sch.split(loop_of("double"), {Factor(), int64_t{4}}).value_or_throw();
  const BlockRV tile = sch.blockize(tiles.at(1)).value_or_throw();
  const auto parts = sch.split(loop_of("add"), {Factor(), int64_t{4}}).value_or_throw();
  const Status moved = sch.compute_at(tile, parts.at(0));
  ASSERT_TRUE(moved.ok()) << support::render(moved.diagnostics());
  EXPECT_EQ(tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3), "");
  // One tile for each part, not all of them.
  EXPECT_EQ(sch.get_loops(tile).value_or_throw().size(), 1u);
}

// The rows that a window reads are copied for each window anew, the same each time: the sum may move behind all of
// them.
TEST(compute_at, reads_later_what_is_written_again_alike) {
  const auto text = [](const char* copied) {
    return fmt::format(R"(
@T.prim_func
def main(X: T.Buffer((9,), "int32"), Y: T.Buffer((6,), "int32")):
    L = T.alloc_buffer((9,), "int32")
    S = T.alloc_buffer((6,), "int32")
    for i in range(6):
        for a in range(3):
            with T.block("copy"):
                v = T.axis.spatial(9, i + a)
                {}
        with T.block("sum"):
            vi = T.axis.spatial(6, i)
            S[vi] = L[vi] + L[vi + 1] + L[vi + 2]
    for i in range(6):
        with T.block("use"):
            vi = T.axis.spatial(6, i)
            Y[vi] = S[vi] * 2
)",
                       copied);
  };
  for (const bool alike : {true, false}) {
    const Function original = testing::from_text(
        text(alike ? "L[v] = X[v]" : "w = T.axis.spatial(6, i)\n                L[v] = X[v] + T.int32(w)"));
    Schedule sch = Schedule::create(original).value_or_throw();
    const LoopRV use = sch.get_loops(sch.get_block("use").value_or_throw()).value_or_throw().at(0);
    const Status moved = sch.compute_at(sch.get_block("sum").value_or_throw(), use);
    EXPECT_EQ(moved.ok(), alike) << (alike ? support::render(moved.diagnostics()) : "");
    EXPECT_EQ(tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3), "");
  }
}

// Blocks that go on from what others left: each element's start and sum come right before the one row that uses them.
std::string sums_apart(const std::string& use) {
  return fmt::format(R"(
@T.prim_func
def main(x: T.handle, Y: T.Buffer((4,), "int32"), n: T.int64(is_size_var=True)):
    X = T.match_buffer(x, (5, n), "int32")
    S = T.alloc_buffer((5,), "int32")
    for i in range(5):
        with T.block("start"):
            vi = T.axis.spatial(5, i)
            S[vi] = T.int32(vi)
    for i, k in T.grid(5, n):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            S[vi] = S[vi] + X[vi, vk]
    for i in range(4):
        with T.block("use"):
            vi = T.axis.spatial(4, i)
            Y[vi] = {}
)",
                     use);
}

TEST(compute_at, goes_to_the_one_iteration_that_goes_on_from_it) {
  const Function original = testing::from_text(sums_apart("S[vi + 1] * 2"));
  Schedule sch = Schedule::create(original).value_or_throw();
  const LoopRV row = sch.get_loops(sch.get_block("use").value_or_throw()).value_or_throw().at(0);
  for (const char* block : {"sum", "start"}) {
    const Status moved = sch.compute_at(sch.get_block(block).value_or_throw(), row);
    ASSERT_TRUE(moved.ok()) << support::render(moved.diagnostics());
    for (const int64_t n : {0, 1, 7})
      EXPECT_EQ(tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3, {{"n", n}}), "") << block;
  }
}

// Two rows use one element: what adds to it may not do so for both.
TEST(compute_at, does_not_add_twice) {
  const Function original = testing::from_text(sums_apart("S[vi] * 2 + S[vi + 1]"));
  Schedule sch = Schedule::create(original).value_or_throw();
  const LoopRV row = sch.get_loops(sch.get_block("use").value_or_throw()).value_or_throw().at(0);
  const Status sum = sch.compute_at(sch.get_block("sum").value_or_throw(), row);
  ASSERT_FALSE(sum.ok());
  EXPECT_EQ(sum.diagnostics()[0].message,
            "cannot compute block 'sum' at loop 'i': other blocks go on writing 'S', and different iterations may meet "
            "in an element");
  const Status start = sch.compute_at(sch.get_block("start").value_or_throw(), row);
  ASSERT_FALSE(start.ok()) << "the sum is no longer behind its start";
}

}  // namespace
}  // namespace lathe::schedule
