#include "tir/testing/differential.h"
#include "tir/testing/programs.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(unroll_loops, makes_of_programs_what_its_text_expects) { expect_text(unroll_loops, __FILE__); }

TEST(unroll_loops, writes_the_iterations_out) {
  const Function f =
      flat_loop(5, ForKind::unrolled, [](const Buffer& a, const Expr& i) { return load(a, {int64(4) - i}); });
  const Function g = run(f, {unroll_loops});
  EXPECT_EQ(count<For>(g), 0);
  EXPECT_EQ(count<BufferStore>(g), 5);
  EXPECT_EQ(difference(f, g, 3), "");
}

TEST(unroll_loops, keeps_a_loop_of_unknown_or_huge_extent) {
  const Function huge =
      flat_loop(100'000, ForKind::unrolled, [](const Buffer& a, const Expr& i) { return load(a, {i}); });
  EXPECT_EQ(count<For>(run(huge, {unroll_loops})), 1);
}

}  // namespace
}  // namespace lathe::tir
