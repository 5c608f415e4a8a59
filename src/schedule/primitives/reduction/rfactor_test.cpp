#include <gtest/gtest.h>

#include "schedule/testing/programs.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

// A sum of unknown length starts in a nest of its own, and so do its partial results: there may be nothing to add.
TEST(rfactor, starts_partial_results_of_what_may_be_nothing) {
  for (const auto& [dtype, combined] :
       {std::pair("int32", "S[vi] + X[vi, vk]"), std::pair("int32", "T.max(S[vi], X[vi, vk])"),
        std::pair("int32", "T.min(S[vi], X[vi, vk])"),
        // Passes over what is no number.
        std::pair("float32", "T.Select(X[vi, vk] > S[vi], X[vi, vk], S[vi])")}) {
    const std::string text = fmt::format(R"(
@T.prim_func
def main(x: T.handle, S: T.Buffer((3,), "{0}"), n: T.int64(is_size_var=True)):
    X = T.match_buffer(x, (3, n * 4), "{0}")
    for i in range(3):
        with T.block("start"):
            vi = T.axis.spatial(3, i)
            S[vi] = T.{0}(-5)
    for i, k0, k1 in T.grid(3, n, 4):
        with T.block("gather"):
            vi = T.axis.spatial(3, i)
            vk = T.axis.reduce(n * 4, k0 * 4 + k1)
            S[vi] = {1}
)",
                                         dtype, combined);
    const Function original = testing::from_text(text);
    Schedule sch = Schedule::create(original).value_or_throw();
    const std::vector<LoopRV> loops = sch.get_loops(sch.get_block("gather").value_or_throw()).value_or_throw();
    const auto partial = sch.rfactor(loops[2], -1);
    ASSERT_TRUE(partial.ok()) << support::render(partial.diagnostics());
    EXPECT_FALSE(sch.get(*partial).value_or_throw()->init);
    EXPECT_TRUE(sch.get_block("gather_rf_start").ok());
    for (const int64_t n : {0, 1, 3})
      EXPECT_EQ(tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3, {{"n", n}}), "") << combined;
  }
}

// Found by a random walk: the start of partial results is stored where the block is, and no further.
TEST(rfactor, starts_partial_results_under_the_predicate) {
  const Function original = testing::from_text(R"(
@T.prim_func
def main(x: T.handle, S: T.Buffer((4,), "int32"), n: T.int64(is_size_var=True)):
    X = T.match_buffer(x, (4, n * 2), "int32")
    for k0, k1, i0, i1 in T.grid(n, 2, 2, 3):
        with T.block("gather"):
            vi = T.axis.spatial(4, i0 * 3 + i1)
            vk = T.axis.reduce(n * 2, k0 * 2 + k1)
            T.where(i0 * 3 + i1 < 4)
            S[vi] = S[vi] + X[vi, vk]
)");
  Schedule sch = Schedule::create(original).value_or_throw();
  const std::vector<LoopRV> loops = sch.get_loops(sch.get_block("gather").value_or_throw()).value_or_throw();
  const auto partial = sch.rfactor(loops[1], 0);
  ASSERT_TRUE(partial.ok()) << support::render(partial.diagnostics());
  EXPECT_TRUE(sch.get_block("gather_rf_start").ok());
  for (const int64_t n : {0, 1, 3})
    EXPECT_EQ(tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3, {{"n", n}}), "");
}

// Partial results over a range that is another in every iteration have no one buffer.
TEST(rfactor, refuses_ranges_that_depend_on_other_loops) {
  Schedule sch = Schedule::create(testing::from_text(R"(
@T.prim_func
def main(X: T.Buffer((3, 7), "int32"), S: T.Buffer((3,), "int32")):
    for i, k0 in T.grid(3, 3):
        for k1 in range(T.min(7 - k0 * 3, 3)):
            with T.block("strips"):
                vi = T.axis.spatial(3, i)
                vk = T.axis.reduce(7, k0 * 3 + k1)
                with T.init():
                    S[vi] = 0
                S[vi] = S[vi] + X[vi, vk]
)"))
                     .value_or_throw();
  const std::vector<LoopRV> loops = sch.get_loops(sch.get_block("strips").value_or_throw()).value_or_throw();
  for (const size_t factored : {1u, 2u}) {
    const auto partial = sch.rfactor(loops[factored], 0);
    ASSERT_FALSE(partial.ok());
    EXPECT_EQ(partial.diagnostics()[0].message,
              fmt::format("cannot rfactor loop 'k{}': the range of loop 'k1' depends on loop 'k0'", factored - 1));
  }
}

}  // namespace
}  // namespace lathe::schedule
