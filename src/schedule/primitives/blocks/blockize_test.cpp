// Blocks of loops: what they are called, and what may be done with them.
#include <gtest/gtest.h>

#include "schedule/testing/programs.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

struct Tiled {
  Function original = testing::matmul(int64(8), int64(6), int64(12));
  Schedule sch = Schedule::create(original).value_or_throw();
  BlockRV block = sch.get_block("matmul").value_or_throw(), outer;
  LoopRV reduce;

  Tiled() {
    const auto l = sch.get_loops(block).value_or_throw();
    const auto i = sch.split(l[0], {Factor(), int64_t{4}}).value_or_throw();
    const auto j = sch.split(l[1], {Factor(), int64_t{2}}).value_or_throw();
    const auto k = sch.split(l[2], {Factor(), int64_t{3}}).value_or_throw();
    EXPECT_TRUE(sch.reorder({i[0], j[0], k[0], i[1], j[1], k[1]}));
    outer = sch.blockize(i[1]).value_or_throw();
    reduce = k[0];
  }
  std::string difference() const { return tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3); }
};

TEST(blockize, gives_a_tile_its_own_block_and_init) {
  const Tiled tiled;
  const Ref<Block> outer = tiled.sch.get(tiled.outer).value_or_throw();
  EXPECT_EQ(outer->name, "matmul_o");
  ASSERT_EQ(outer->iter_vars.size(), 3u);
  EXPECT_EQ(outer->iter_vars[2]->type, IterType::reduce);
  EXPECT_TRUE(outer->init);
  EXPECT_FALSE(tiled.sch.get(tiled.block).value_or_throw()->init);
  EXPECT_EQ(outer->reads.size(), 2u) << "what it accumulates onto does not count";
  EXPECT_EQ(tiled.difference(), "");
}

TEST(blockize, lets_the_init_of_the_tile_be_taken_out) {
  Tiled tiled;
  ASSERT_TRUE(tiled.sch.decompose_reduction(tiled.outer, tiled.reduce));
  EXPECT_EQ(tiled.difference(), "");
  EXPECT_TRUE(tiled.sch.get_block("matmul_o_init"));
}

TEST(blockize, keeps_the_init_inside_where_the_whole_reduction_is) {
  Schedule sch = Schedule::create(testing::matmul(int64(4), int64(4), int64(4))).value_or_throw();
  const BlockRV block = sch.get_block("matmul").value_or_throw();
  const BlockRV outer = sch.blockize(sch.get_loops(block).value_or_throw()[1]).value_or_throw();
  EXPECT_FALSE(sch.get(outer).value_or_throw()->init);
  EXPECT_TRUE(sch.get(block).value_or_throw()->init);
}

// The three blocks of a dense layer in one loop over rows.
struct Rows {
  Function original = testing::dense(int64(5), int64(6), int64(4));
  Schedule sch = Schedule::create(original).value_or_throw();
  BlockRV matmul = sch.get_block("matmul").value_or_throw(), bias = sch.get_block("bias_add").value_or_throw(),
          relu = sch.get_block("relu").value_or_throw();

  Rows() {
    const LoopRV row = sch.get_loops(relu).value_or_throw()[0];
    EXPECT_TRUE(sch.compute_at(bias, row));
    EXPECT_TRUE(sch.compute_at(matmul, row));
  }
  std::string difference() const { return tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3); }
};

template <class T>
std::string why(const Result<T>& result) {
  return result.ok() ? "accepted" : result.diagnostics()[0].message;
}

TEST(blockize_blocks, puts_neighbours_into_one_block) {
  Rows rows;
  const auto made = rows.sch.blockize({rows.matmul, rows.bias});
  ASSERT_EQ(why(made), "accepted");
  const Ref<Block> block = rows.sch.get(*made).value_or_throw();
  EXPECT_EQ(block->name, "matmul_bias_add_o");
  EXPECT_EQ(block->iter_vars.size(), 1u);
  EXPECT_EQ(rows.sch.get_child_blocks(*made).value_or_throw().size(), 2u);
  EXPECT_EQ(rows.difference(), "");
}

TEST(blockize_blocks, takes_one_block_too) {
  Rows rows;
  ASSERT_EQ(why(rows.sch.blockize(std::vector<BlockRV>{rows.bias})), "accepted");
  EXPECT_EQ(rows.difference(), "");
}

TEST(blockize_blocks, refuses_what_would_take_others_in_or_cut_a_reduction) {
  Rows rows;
  EXPECT_EQ(why(rows.sch.blockize({rows.matmul, rows.relu})),
            "cannot make a block of several: block 'bias_add' among them would be in it too");
  EXPECT_EQ(why(rows.sch.blockize(std::vector<BlockRV>{rows.matmul})),
            "cannot make a block of several: loop 'ax_vk' around them drives a reduce axis of block 'matmul'");
  EXPECT_EQ(why(rows.sch.blockize(std::vector<BlockRV>{})), "blockize needs at least one block");
}

}  // namespace
}  // namespace lathe::schedule
