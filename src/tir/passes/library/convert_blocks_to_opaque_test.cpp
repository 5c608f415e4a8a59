#include "tir/testing/programs.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(convert_blocks_to_opaque, makes_of_programs_what_its_text_expects) {
  expect_text(convert_blocks_to_opaque, __FILE__);
}

TEST(convert_blocks_to_opaque, wants_inits_lowered_before) {
  const Function f = matmul(int64(3), int64(5), int64(2), 4, ForKind::serial);
  EXPECT_EQ(refusal(f, convert_blocks_to_opaque), "tir-illegal-after-stage");
  const Function g = run(f, {lower_init, convert_blocks_to_opaque});
  EXPECT_EQ(difference(f, g, 3), "");
  post_order(g->body, [](const NodeRef& n) {
    if (const auto* block = n.as<Block>()) EXPECT_TRUE(block->iter_vars.empty()) << block->name;
  });
  EXPECT_EQ(difference(f, run(g, {convert_blocks, flatten_buffers}), 3), "");
}

}  // namespace
}  // namespace lathe::tir
