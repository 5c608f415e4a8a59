// Blocks of loops: what they are called, and what may be done with them.
#include <gtest/gtest.h>

#include "schedule/analysis/access.h"
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

TEST(blockize, keeps_the_predicate_of_a_tail_inside) {
  const Function original = testing::matmul(int64(5), int64(6), int64(4));
  Schedule sch = Schedule::create(original).value_or_throw();
  const BlockRV block = sch.get_block("matmul").value_or_throw();
  const auto l = sch.get_loops(block).value_or_throw();
  const auto i = sch.split(l[0], {Factor(), int64_t{4}}).value_or_throw();
  ASSERT_TRUE(sch.blockize(i[1]).ok());
  EXPECT_EQ(tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3), "");
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

TEST(blockize_blocks, takes_one_reduction_with_its_init) {
  Rows rows;
  const auto made = rows.sch.blockize(std::vector<BlockRV>{rows.matmul});
  ASSERT_EQ(why(made), "accepted");
  const Ref<Block> block = rows.sch.get(*made).value_or_throw();
  EXPECT_TRUE(block->init);
  EXPECT_FALSE(rows.sch.get(rows.matmul).value_or_throw()->init);
  EXPECT_EQ(block->iter_vars.back()->type, IterType::reduce);
  EXPECT_EQ(rows.difference(), "");
}

// S[t + 1, i] = S[t, i] + X[t, i], and Y = 2 S after each step: a recurrence over t.
Function scanned() {
  testing::Builder b;
  const std::vector<Expr> shape{int64(5), int64(3)};
  const Buffer x = b.input("X", {int64(4), int64(3)}), s = b.output("S", shape), y = b.output("Y", shape);
  const Var t = ir::var("t"), i = ir::var("i");
  const auto block = [&](const char* name, const Buffer& to, const auto& value) {
    const Var vt = ir::var("vt"), vi = ir::var("vi");
    const std::vector<Expr> at{vt + 1, vi};
    const Ref<Block> made = make<Block>(
        std::vector<IterVar>{make<IterVarNode>(Range{int64(0), int64(4)}, vt, IterType::scan),
                             make<IterVarNode>(Range{int64(0), int64(3)}, vi, IterType::spatial)},
        std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{},
        std::vector<BufferRegion>{}, std::string(name), Stmt{}, Stmt(make<BufferStore>(to, value(vt, vi), at, Expr())));
    return Stmt(make<BlockRealize>(std::vector<Expr>{t, i}, boolean(true), with_regions(made)));
  };
  const Stmt body = seq({block("step", s, [&](Expr vt, Expr vi) { return load(s, {vt, vi}) + load(x, {vt, vi}); }),
                         block("show", y, [&](Expr vt, Expr vi) { return load(s, {vt + 1, vi}) * testing::f32(2); })});
  b.add(make<For>(t, int64(0), int64(4), ForKind::serial, make<For>(i, int64(0), int64(3), ForKind::serial, body)));
  return b.build();
}

TEST(blockize_blocks, keeps_the_order_of_a_scan) {
  const Function original = scanned();
  Schedule sch = Schedule::create(original).value_or_throw();
  const BlockRV step = sch.get_block("step").value_or_throw(), show = sch.get_block("show").value_or_throw();
  const auto made = sch.blockize({step, show});
  ASSERT_EQ(why(made), "accepted");
  EXPECT_EQ(sch.get(*made).value_or_throw()->iter_vars[0]->type, IterType::scan);
  EXPECT_EQ(tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3), "");
  const std::vector<LoopRV> around = sch.get_loops(*made).value_or_throw();
  EXPECT_FALSE(sch.parallel(around[0]));
  EXPECT_TRUE(sch.parallel(around[1]));
}

TEST(blockize_blocks, refuses_what_would_take_others_in_or_cut_a_reduction) {
  Rows rows;
  EXPECT_EQ(why(rows.sch.blockize({rows.matmul, rows.relu})),
            "cannot make a block of several: block 'bias_add' among them would be in it too");
  EXPECT_EQ(why(rows.sch.blockize(std::vector<BlockRV>{})), "blockize needs at least one block");
  const LoopRV k = rows.sch.get_loops(rows.matmul).value_or_throw().back();
  const BlockRV copy = rows.sch.read_at(k, rows.matmul, 0, "local").value_or_throw();
  EXPECT_EQ(why(rows.sch.blockize({copy, rows.matmul})),
            "cannot make a block of several: loop 'ax_vk' around them drives a reduce axis of block 'matmul'");
}

}  // namespace
}  // namespace lathe::schedule
