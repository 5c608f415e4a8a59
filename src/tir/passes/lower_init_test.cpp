#include "tir/testing/differential.h"
#include "tir/testing/programs.h"
#include "tir/testing/run.h"
#include "tir/verify.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(lower_init, makes_of_programs_what_its_text_expects) { expect_text(lower_init, __FILE__); }

TEST(lower_init, guards_the_init_by_the_first_reduce_iteration) {
  const Function f = matmul(int64(2), int64(3), int64(4), 4, ForKind::serial), g = run(f, {lower_init});
  post_order(g->body, [](const NodeRef& n) {
    if (const auto* block = n.as<Block>()) EXPECT_FALSE(block->init);
  });
  EXPECT_EQ(count<IfThenElse>(g), 1);
  EXPECT_EQ(difference(f, g, 3), "");
}

TEST(lower_init, makes_blocks_around_a_reduction_declare_what_it_reads) {
  const Function plain = matmul(int64(2), int64(3), int64(4), 4, ForKind::serial);
  const Stmt nest = plain->body.as<BlockRealize>()->block->body;
  const Function f = with(*plain, [&](PrimFunc& copy) { copy.body = root_block(block("around", {}, {}, nest)); });
  ASSERT_EQ(support::render(verify(f)), "");
  const Function g = run(f, {lower_init});
  EXPECT_EQ(support::render(verify(g, {"lower_init"})), "");
  EXPECT_EQ(difference(f, g, 3), "");
}

TEST(lower_init, leaves_blocks_without_init_alone) {
  const Function f = padded_stencil(5, ForKind::serial);
  EXPECT_TRUE(structural_equal(run(f, {lower_init}), f));
}

}  // namespace
}  // namespace lathe::tir
