#include "tir/testing/differential.h"
#include "tir/testing/programs.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(partition_loops, makes_of_programs_what_its_text_expects) { expect_text(partition_loops, __FILE__); }

// The loops of the lowered program, and how many of them hold no guard.
TEST(partition_loops, frees_the_main_part_of_padding) {
  const Function f = padded_stencil(40, ForKind::serial);
  const Function g = run(f, {convert_blocks, flatten_buffers, simplify, partition_loops, simplify});
  int long_loops = 0;
  post_order(g->body, [&](const NodeRef& n) {
    const auto* loop = n.as<For>();
    if (!loop) return;
    ++long_loops;
    post_order(loop->body, [](const NodeRef& inner) { EXPECT_FALSE(inner.is<Call>()) << "a guard in the main part"; });
  });
  EXPECT_EQ(long_loops, 2);
  EXPECT_EQ(difference(f, g, 3), "");
}

TEST(partition_loops, frees_the_whole_tiles_of_a_symbolic_extent) {
  const Function f = matmul(int64(2), size_var("n"), int64(3), 4, ForKind::serial);
  const Function g = run(f, {lower_init, convert_blocks, flatten_buffers, simplify, partition_loops, simplify});
  for (const int64_t n : {0, 1, 3, 4, 5, 8, 11}) EXPECT_EQ(difference(f, g, 3, {{"n", n}}), "") << n;
  EXPECT_GT(count<For>(g), count<For>(f));
}

TEST(partition_loops, versions_the_iterations_of_a_parallel_loop) {
  const Function f = padded_stencil(9, ForKind::parallel);
  const Function g = run(f, {convert_blocks, flatten_buffers, simplify, partition_loops});
  EXPECT_EQ(count<For>(g), count<For>(f));
  EXPECT_EQ(count<IfThenElse>(g), 1);
  EXPECT_EQ(difference(f, g, 3), "");
}

}  // namespace
}  // namespace lathe::tir
