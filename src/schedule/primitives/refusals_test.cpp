// What the primitives refuse, and what they say.
#include <gtest/gtest.h>

#include "schedule/testing/programs.h"
#include "tir/script/dialect.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

using testing::Builder;

template <class T>
std::string reason(const Result<T>& result) {
  return result.ok() ? "accepted" : result.diagnostics()[0].message;
}

// The message and the notes, a line each.
template <class T>
std::string refusal(const Result<T>& result) {
  if (result.ok()) return "accepted";
  std::string text = result.diagnostics()[0].message + "\n";
  for (const support::Note& note : result.diagnostics()[0].notes) text += note.message + "\n";
  return text;
}

struct Start {
  Schedule schedule;
  BlockRV block;
  std::vector<LoopRV> loops;
  Start(const Function& f, const std::string& name)
      : schedule(Schedule::create(f).value_or_throw()),
        block(schedule.get_block(name).value_or_throw()),
        loops(schedule.get_loops(block).value_or_throw()) {}
};

Start gemm() { return {testing::matmul(int64(8), int64(6), int64(4)), "matmul"}; }
Start dense(const std::string& block) { return {testing::dense(int64(8), int64(6), int64(4)), block}; }

// A[t + 1, i] = A[t, i + 1]: both loops carry a dependence, in opposite directions.
Function recurrence() {
  Builder b;
  const Buffer a = b.output("A", {int64(6), int64(6)});
  const Var t = ir::var("t"), i = ir::var("i");
  b.add(make<For>(t, int64(0), int64(5), ForKind::serial,
                  make<For>(i, int64(0), int64(5), ForKind::serial,
                            make<BufferStore>(a, load(a, {t, i + 1}), std::vector<Expr>{t + 1, i}, Expr()))));
  return b.build();
}

TEST(refusals, of_loops_that_reduce) {
  Start s = gemm();
  EXPECT_EQ(reason(s.schedule.parallel(s.loops[2])),
            "cannot parallelize loop 'k': iterations of loop 'k' accumulate into the same element of 'C' (reduce axis "
            "'vk' of block 'matmul')");
  const auto vectorized = s.schedule.vectorize(s.loops[2]);
  EXPECT_EQ(reason(vectorized).find("cannot vectorize loop 'k': iterations of loop 'k' accumulate"), 0u);
  EXPECT_NE(vectorized.diagnostics()[0].help.find("rfactor"), std::string::npos);
  EXPECT_EQ(reason(s.schedule.parallel(s.loops[0])), "accepted");
  EXPECT_EQ(reason(s.schedule.parallel(s.loops[0])), "cannot parallelize loop 's0': it is already parallel");
}

TEST(refusals, of_dependences_between_iterations) {
  Schedule s = Schedule::create(recurrence()).value_or_throw();
  // There is no block to find the loops by; the root's body holds them.
  EXPECT_EQ(reason(s.get_child_blocks(s.get_block("root").value_or_throw())), "accepted");
  Builder b;
  const Buffer a = b.output("A", {int64(6), int64(6)});
  const Var t = ir::var("t"), i = ir::var("i"), vt = ir::var("vt"), vi = ir::var("vi");
  const Ref<Block> block = make<Block>(
      std::vector<IterVar>{make<IterVarNode>(Range{int64(0), int64(5)}, vt, IterType::spatial),
                           make<IterVarNode>(Range{int64(0), int64(5)}, vi, IterType::spatial)},
      std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{point_region(a, {vt, vi + 1})},
      std::vector<BufferRegion>{point_region(a, {vt + 1, vi})}, std::string("step"), Stmt{},
      Stmt(make<BufferStore>(a, load(a, {vt, vi + 1}), std::vector<Expr>{vt + 1, vi}, Expr())));
  b.add(make<For>(t, int64(0), int64(5), ForKind::serial,
                  make<For>(i, int64(0), int64(5), ForKind::serial,
                            make<BlockRealize>(std::vector<Expr>{t, i}, boolean(true), block))));
  Start start(b.build(), "step");
  EXPECT_EQ(
      refusal(start.schedule.reorder({start.loops[1], start.loops[0]})),
      "cannot reorder the nest of loop 't': two of its instances would touch an element of 'A' in the other order\n"
      "block 'step' writes A[1, 1] where t = 0, i = 1\n"
      "block 'step' reads A[1, 1] where t = 1, i = 0\n");
  EXPECT_EQ(refusal(start.schedule.parallel(start.loops[0])),
            "cannot parallelize loop 't': different iterations of loop 't' touch the same element of 'A' (in 'step')\n"
            "block 'step' writes A[1, 1] where t = 0, i = 1\n"
            "block 'step' reads A[1, 1] where t = 1, i = 0\n");
  // Fixed t, the rows read and written differ.
  EXPECT_EQ(reason(start.schedule.compute_inline(start.block)),
            "cannot inline block 'step': an index is neither a "
            "variable of the block nor a constant");
}

TEST(refusals, of_arguments_no_program_could_make_right) {
  Start s = gemm();
  EXPECT_EQ(reason(s.schedule.split(s.loops[0], {int64_t{0}})), "cannot split loop 's0': factor 0 is not positive");
  EXPECT_EQ(reason(s.schedule.split(s.loops[0], {Factor(), Factor()})),
            "cannot split loop 's0': more than one factor is None");
  EXPECT_EQ(reason(s.schedule.split(s.loops[0], {})), "cannot split loop 's0': no factors given");
  EXPECT_EQ(reason(s.schedule.split(s.loops[0], {int64_t{2}, int64_t{3}})),
            "cannot split loop 's0': the factors' product 6 does not cover the extent 8");
  EXPECT_EQ(reason(s.schedule.peel(s.loops[0], int64_t{-1})), "cannot peel loop 's0': -1 is not positive");
  EXPECT_EQ(reason(s.schedule.strip_mine(s.loops[0], int64_t{0})), "cannot strip-mine loop 's0': 0 is not positive");
  EXPECT_EQ(reason(s.schedule.loop_partition(s.loops[0], {int64_t{5}, int64_t{5}})),
            "cannot partition loop 's0': the parts do not add up to its extent 8");
  EXPECT_EQ(reason(s.schedule.fuse({})), "fuse needs at least one loop");
  EXPECT_EQ(reason(s.schedule.reorder({s.loops[0], s.loops[0]})), "cannot reorder: loop 's0' is given twice");
  EXPECT_EQ(reason(s.schedule.unannotate(s.loops[0], "x")), "loop 's0' has no annotation 'x'");
  EXPECT_EQ(reason(s.schedule.parallel(LoopRV{99})), "handle 99 is no loop of this schedule");
  EXPECT_EQ(reason(s.schedule.parallel(LoopRV{s.block.index})), "handle 0 is no loop of this schedule");
  EXPECT_EQ(reason(s.schedule.work_on("other")), "the module has no tensor function named 'other'");
}

TEST(refusals, of_loops_that_are_no_nest) {
  Start s = dense("matmul");
  const std::vector<LoopRV> others =
      s.schedule.get_loops(s.schedule.get_block("relu").value_or_throw()).value_or_throw();
  EXPECT_EQ(reason(s.schedule.fuse({s.loops[0], s.loops[2]})),
            "cannot fuse loop 's0' with loop 'k': the second is not the only statement in the first");
  EXPECT_EQ(reason(s.schedule.fuse({s.loops[1], s.loops[0]})),
            "cannot fuse loop 's1' with loop 's0': the second is not the only statement in the first");
  EXPECT_NE(reason(s.schedule.reorder({s.loops[0], others[1]})).find("not one nest"), std::string::npos);
}

TEST(refusals, of_inlining) {
  Start s = dense("matmul");
  EXPECT_EQ(reason(s.schedule.compute_inline(s.block)), "cannot inline block 'matmul': it is a reduction");
  const BlockRV relu = s.schedule.get_block("relu").value_or_throw(),
                bias = s.schedule.get_block("bias_add").value_or_throw();
  EXPECT_EQ(reason(s.schedule.compute_inline(relu)), "cannot inline block 'relu': 'D' is an output of the function");
  EXPECT_EQ(reason(s.schedule.reverse_compute_inline(bias)), "cannot inline into block 'matmul': it is a reduction");
  EXPECT_EQ(reason(s.schedule.reverse_compute_inline(relu)), "accepted");
}

TEST(refusals, of_inlining_a_part_that_is_read_with_another) {
  // bias_add writes rows 0 to 4 and 5 to 7 apart; relu reads rows 0 to 4 and 5 to 7, or 0 to 5 and 6 and 7.
  for (const int64_t cut : {5, 6}) {
    Start s = dense("bias_add");
    const std::vector<LoopRV> written = s.schedule.loop_partition(s.loops[0], {int64_t{5}, Factor()}).value_or_throw();
    const BlockRV relu = s.schedule.get_block("relu").value_or_throw();
    const LoopRV rows = s.schedule.get_loops(relu).value_or_throw()[0];
    ASSERT_TRUE(s.schedule.loop_partition(rows, {cut, Factor()}));
    const BlockRV rest = s.schedule.get_child_blocks(written[1]).value_or_throw()[0];
    if (cut == 5) {
      EXPECT_EQ(reason(s.schedule.compute_inline(s.block)), "accepted");
      EXPECT_EQ(reason(s.schedule.compute_inline(rest)), "accepted");
      EXPECT_FALSE(s.schedule.get_block("bias_add")) << "neither part is left";
    } else {
      EXPECT_EQ(reason(s.schedule.compute_inline(s.block)),
                "cannot inline block 'bias_add': it does not write all that block 'relu' reads of 'E'");
    }
  }
}

TEST(refusals, of_placements) {
  Start s = dense("matmul");
  const BlockRV bias = s.schedule.get_block("bias_add").value_or_throw();
  const std::vector<LoopRV> loops = s.schedule.get_loops(bias).value_or_throw();
  EXPECT_EQ(reason(s.schedule.compute_at(bias, s.loops[0])),
            "cannot compute block 'bias_add' at loop 's0': block 'relu', which reads 'E', is not inside the loop");
  EXPECT_EQ(reason(s.schedule.compute_at(bias, loops[0])),
            "cannot compute block 'bias_add' at loop 'i': the block is already inside the loop");
  EXPECT_EQ(refusal(s.schedule.reverse_compute_at(bias, s.loops[2])),
            "cannot compute block 'bias_add' at loop 'k': could not show that 'C' is final after one iteration: other "
            "iterations of loop 'k' touch it too\n"
            "block 'bias_add' reads C[0, 0] where s0 = 0, s1 = 0, k = 0\n"
            "block 'matmul' writes C[0, 0] where s0 = 0, s1 = 0, k = 3\n");
  EXPECT_EQ(reason(s.schedule.reverse_compute_at(bias, s.loops[1])), "accepted");
}

TEST(refusals, of_caches_and_scopes) {
  Start s = gemm();
  EXPECT_EQ(reason(s.schedule.cache_read(s.block, 2, "local")),
            "cannot cache what block 'matmul' reads: it reads 2 buffers, there is no number 2");
  EXPECT_EQ(reason(s.schedule.cache_write(s.block, 1, "local")),
            "cannot cache what block 'matmul' writes: it writes 1 buffers, there is no number 1");
  EXPECT_EQ(reason(s.schedule.cache_write(s.schedule.get_block("root").value_or_throw(), 0, "local")),
            "cannot cache what block 'root' writes: it is the root block");
  EXPECT_EQ(reason(s.schedule.set_scope(s.block, 0, "local")),
            "'C' is a parameter of the function: its scope is given");
}

IndexMap map_of(const char* text) { return parse_index_map(text).value_or_throw(); }

TEST(refusals, of_layouts) {
  Start s = gemm();
  const BufferIndex output{.writes = true};
  const auto layout = [&](const char* map) {
    return reason(s.schedule.transform_layout(s.block, output, map_of(map)));
  };
  EXPECT_EQ(layout("lambda i, j: (j, i)"), "cannot change the layout of 'C': it is a parameter of the function");
  ASSERT_TRUE(s.schedule.cache_write(s.block, 0, "local"));
  EXPECT_EQ(layout("lambda i: (i,)"),
            "cannot change the layout of 'C_local': index map 'lambda i0: (i0,)' takes 1 indices where there are 2");
  EXPECT_EQ(layout("lambda i, j: (i, i)"),
            "cannot change the layout of 'C_local': index map 'lambda i0, i1: (i0, i0)' takes "
            "different indices to the same: i0 = 0, i1 = 0 and i0 = 0, i1 = 1");
  EXPECT_EQ(layout("lambda i, j: (i,)"),
            "cannot change the layout of 'C_local': index map 'lambda i0, i1: (i0,)' takes "
            "different indices to the same: i0 = 0, i1 = 0 and i0 = 0, i1 = 1");
  EXPECT_EQ(layout("lambda i, j: (i * i + j,)"),
            "cannot change the layout of 'C_local': index map 'lambda i0, i1: (i0 * i0 + i1,)' could not be shown to "
            "take different indices to different ones");
  EXPECT_EQ(
      reason(s.schedule.transform_layout(s.block, output, map_of("lambda i, j: (i * i * 6 + j,)"),
                                         ir::Value(int64_t{0}), true)),
      "cannot change the layout of 'C_local': which elements index map 'lambda i0, i1: (i0 * i0 * 6 + i1,)' leaves "
      "out could not be told, so they cannot be padded");
  EXPECT_EQ(layout("lambda i, j: (i + 1, j)"),
            "cannot change the layout of 'C_local': index map 'lambda i0, i1: (i0 + "
            "1, i1)' has a result that does not start at 0");
  EXPECT_EQ(layout("lambda i, j: (i * 3, j)"), "accepted");
  EXPECT_EQ(reason(s.schedule.transform_layout(s.block, {.writes = true, .number = 3}, map_of("lambda i, j: (j, i)"))),
            "block 'matmul' writes 1 buffers, there is no number 3");
  EXPECT_EQ(reason(parse_index_map("lambda i, i: (i,)")),
            "index map 'lambda i, i: (i,)', column 12: 'i' is named twice");
  EXPECT_EQ(reason(parse_index_map("lambda i: (i // 0,)")),
            "index map 'lambda i: (i // 0,)', column 18: a divisor is not a positive number");
  for (const char* text :
       {"", "lambda", "lambda i", "lambda i:", "lambda i: i", "lambda i: (i", "lambda i: (k,)", "lambda i: (i,) 1",
        "lambda i: (i + )", "lambda i: (99999999999999999999,)", "lambda 4: (4,)"})
    EXPECT_NE(reason(parse_index_map(text)), "accepted") << text;
}

TEST(refusals, of_instances_by_other_variables) {
  Start s = gemm();
  const auto transform = [&](const char* map) {
    return reason(s.schedule.transform_block_layout(s.block, map_of(map)));
  };
  EXPECT_EQ(transform("lambda i, j, k: (i * 6 + j, k // 3, k % 3)"),
            "cannot transform the instances of block 'matmul': index map 'lambda i0, i1, i2: (i0 * 6 + i1, i2 // 3, i2 "
            "% 3)' leaves gaps");
  EXPECT_EQ(transform("lambda i, j, k: (i, j * 4 + k)"),
            "cannot transform the instances of block 'matmul': result 1 of index map 'lambda i0, i1, i2: (i0, i1 * 4 + "
            "i2)' mixes spatial and reduce axes");
  EXPECT_EQ(transform("lambda i, j, k: (k // 2, k % 2, i * 6 + j)"), "accepted");
}

TEST(refusals, of_indices_that_are_not_the_blocks_own) {
  Start s(testing::conv2d({}), "conv");
  EXPECT_EQ(reason(s.schedule.reindex(s.block, {.writes = false, .number = 0})), "accepted");
  const BlockRV pad = s.schedule.get_block("pad").value_or_throw();
  EXPECT_EQ(reason(s.schedule.reindex(pad, {.writes = false})),
            "cannot reindex 'X' of block 'pad': it is touched under a condition, in loops, or at different indices");
  const LoopRV rows = s.schedule.get_loops(s.block).value_or_throw()[2];
  ASSERT_TRUE(s.schedule.split(rows, {Factor(), int64_t{3}}));
  EXPECT_EQ(reason(s.schedule.reindex(s.block, {.writes = true})), "accepted") << "the tail is cut off exactly";
}

TEST(refusals, of_thread_axes) {
  Start s = gemm();
  EXPECT_EQ(reason(s.schedule.bind(s.loops[0], "threadIdx.w")),
            "cannot bind loop 's0' to 'threadIdx.w': there is no such thread axis");
  EXPECT_EQ(reason(s.schedule.bind(s.loops[2], "threadIdx.x")),
            "cannot bind loop 'k': iterations of loop 'k' accumulate into the same element of 'C' (reduce axis 'vk' of "
            "block 'matmul')");
  EXPECT_EQ(reason(s.schedule.bind(s.loops[1], "threadIdx.x")), "accepted");
  EXPECT_EQ(reason(s.schedule.bind(s.loops[1], "threadIdx.x")),
            "cannot bind loop 's1': it is already bound to a thread axis");
  EXPECT_EQ(reason(s.schedule.bind(s.loops[0], "threadIdx.x")),
            "cannot bind loop 's0' to 'threadIdx.x': loop 's1' inside it is bound to that axis");
  EXPECT_EQ(reason(s.schedule.parallel(s.loops[0])),
            "cannot parallelize loop 's0': loop 's1' inside it is bound to a thread axis");
  EXPECT_EQ(reason(s.schedule.vectorize(s.loops[0])),
            "cannot vectorize loop 's0': loop 's1' inside it is bound to a thread axis");
  EXPECT_EQ(reason(s.schedule.bind(s.loops[0], "blockIdx.x")), "accepted");

  const Var n = ir::size_var("n");
  Start unknown(testing::matmul(n, int64(4), int64(4)), "matmul");
  EXPECT_EQ(reason(unknown.schedule.bind(unknown.loops[0], "threadIdx.x")),
            "cannot bind loop 's0' to 'threadIdx.x': its extent is not a constant");
  EXPECT_EQ(reason(unknown.schedule.bind(unknown.loops[0], "blockIdx.x")), "accepted");

  // Two nests of other extents cannot be threads of one launch.
  Start pair = dense("relu");
  const std::vector<LoopRV> parts = pair.schedule.split(pair.loops[1], {int64_t{2}, Factor()}).value_or_throw();
  const BlockRV bias = pair.schedule.get_block("bias_add").value_or_throw();
  ASSERT_TRUE(pair.schedule.compute_at(bias, pair.loops[0]));
  ASSERT_TRUE(pair.schedule.bind(pair.schedule.get_loops(bias).value_or_throw()[1], "threadIdx.x"));
  ASSERT_TRUE(pair.schedule.bind(parts[0], "threadIdx.x"));
  EXPECT_EQ(reason(pair.schedule.bind(pair.loops[0], "blockIdx.x")),
            "cannot bind loop 'i' to 'blockIdx.x': loop 'ax_vj' and loop 'j_0' would be one axis of one launch, with "
            "other extents");
}

TEST(refusals, of_copies_of_a_diagonal) {
  Builder b;
  const Buffer x = b.input("X", {int64(4)}), y = b.output("Y", {int64(4), int64(4)});
  const Var i = ir::var("i"), vi = ir::var("vi");
  const Ref<Block> block = make<Block>(
      std::vector<IterVar>{make<IterVarNode>(Range{int64(0), int64(4)}, vi, IterType::spatial)}, std::vector<Buffer>{},
      std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{point_region(x, {vi})},
      std::vector<BufferRegion>{point_region(y, {vi, vi})}, std::string("diagonal"), Stmt{},
      Stmt(make<BufferStore>(y, load(x, {vi}), std::vector<Expr>{vi, vi}, Expr())));
  b.add(make<For>(i, int64(0), int64(4), ForKind::serial,
                  Stmt(make<BlockRealize>(std::vector<Expr>{i}, boolean(true), block))));
  Start s(b.build(), "diagonal");
  EXPECT_EQ(reason(s.schedule.cache_write(s.block, 0, "local")),
            "cannot cache what block 'diagonal' writes: which elements of 'Y' it writes is not an exact region");
}

TEST(refusals, of_merging) {
  Start s = dense("matmul");
  const auto loops_of = [&](const char* name) {
    return s.schedule.get_loops(s.schedule.get_block(name).value_or_throw()).value_or_throw();
  };
  const std::vector<LoopRV> bias = loops_of("bias_add"), relu = loops_of("relu");
  EXPECT_EQ(reason(s.schedule.merge({s.loops[0]})), "merge needs at least two loops");
  EXPECT_EQ(reason(s.schedule.merge({s.loops[0], s.loops[1]})),
            "cannot merge loop 's0': the loops do not follow one another");
  EXPECT_EQ(reason(s.schedule.merge({s.loops[0], bias[1]})),
            "cannot merge loop 'j' with loop 's0': they are not in equally many loops of their own");
  EXPECT_EQ(reason(s.schedule.merge({s.loops[2], bias[0]})),
            "cannot merge loop 'i' with loop 'k': they are not in equally many loops of their own");
  EXPECT_EQ(refusal(s.schedule.merge({s.loops[0], relu[0]})),
            "cannot merge loop 'i': what it touches is touched between the loops\n"
            "block 'bias_add' writes E[0, 0] where i = 0, j = 0\n"
            "block 'relu' reads E[0, 0] where i = 0, j = 0\n");
  EXPECT_EQ(reason(s.schedule.merge({bias[1], relu[1]})), "accepted");

  // What a row of the second needs is written by a later row of the first.
  Builder b;
  const Buffer x = b.input("X", {int64(5)}), t = b.inner("T", {int64(5)}), y = b.output("Y", {int64(5)});
  b.compute("first", t, [&](const std::vector<Expr>& i) { return load(x, i) + load(x, i); });
  b.compute("second", y, [&](const std::vector<Expr>& i) { return load(t, {4 - i[0]}); });
  Start mirrored(b.build(), "first");
  const BlockRV second = mirrored.schedule.get_block("second").value_or_throw();
  EXPECT_EQ(
      refusal(mirrored.schedule.merge({mirrored.loops[0], mirrored.schedule.get_loops(second).value_or_throw()[0]})),
      "cannot merge loop 'i' with loop 'i': an iteration would touch an element of 'T' before an earlier loop does\n"
      "block 'first' writes T[4] where i = 4\n"
      "block 'second' reads T[4] where i = 0\n");
}

TEST(refusals, of_blocks_of_loops) {
  Start s = gemm();
  EXPECT_EQ(reason(s.schedule.reorder_block_iter_var(s.block, {0, 0, 1})),
            "cannot reorder the variables of block 'matmul': [0, 0, 1] is no order of its 3");
  const LoopRV fused = s.schedule.fuse({s.loops[1], s.loops[2]}).value_or_throw();
  const std::vector<LoopRV> parts = s.schedule.split(fused, {Factor(), int64_t{2}}).value_or_throw();
  EXPECT_EQ(reason(s.schedule.blockize(parts[1])),
            "cannot make a block of loop 's1_k_fused_1': loop 's1_k_fused_0' drives both spatial and reduce axes of "
            "block 'matmul'");
  EXPECT_EQ(reason(s.schedule.blockize(parts[0])), "accepted");
}

TEST(refusals, of_tiles) {
  Start s = gemm();
  EXPECT_EQ(reason(s.schedule.sample_perfect_tile(s.loops[0], 2, 4, {4, 3})),
            "decision [4, 3] is no 2 factors of loop 's0''s extent, the last of at most 4");
  EXPECT_EQ(reason(s.schedule.sample_perfect_tile(s.loops[0], 2, 4, {1, 8})),
            "decision [1, 8] is no 2 factors of loop 's0''s extent, the last of at most 4");
  EXPECT_EQ(reason(s.schedule.sample_perfect_tile(s.loops[0], 0, 4, {})),
            "cannot sample a tile of loop 's0': 0 factors");
  EXPECT_EQ(reason(s.schedule.sample_perfect_tile(s.loops[0], 2, 4, {2, 4})), "accepted");
  EXPECT_EQ(reason(s.schedule.sample_partitioned_tile(s.loops[0], 3, 1, 4, {4, 1, 2})),
            "decision [4, 1, 2] is no 3 factors of loop 's0''s extent, of which those from number 1 on make a multiple "
            "of 4");
  EXPECT_EQ(reason(s.schedule.sample_partitioned_tile(s.loops[0], 3, 1, 4, {2, 1, 4})), "accepted");
}

TEST(refusals, of_copies_at_loops) {
  Start s = dense("bias_add");
  const BlockRV relu = s.schedule.get_block("relu").value_or_throw();
  const LoopRV elsewhere = s.schedule.get_loops(relu).value_or_throw()[0];
  EXPECT_EQ(reason(s.schedule.read_at(elsewhere, s.block, 0, "local")),
            "cannot read at the loop: it is not around block 'bias_add' in its scope");
  EXPECT_EQ(reason(s.schedule.write_at(s.loops[0], s.block, 1, "local")),
            "cannot cache what block 'bias_add' writes: it writes 1 buffers, there is no number 1");
  EXPECT_EQ(reason(s.schedule.read_at(s.loops[0], s.block, 0, "local")), "accepted");
  EXPECT_EQ(reason(s.schedule.write_at(s.loops[0], s.block, 0, "local")), "accepted");
  EXPECT_EQ(reason(s.schedule.cache_inplace(s.block, 0, "local")),
            "cannot cache what block 'bias_add' updates: it does not read 'E_local' before it writes it");
}

// A row that all iterations share is left alone by the last ones, which are outside of the domain: what they would
// write back has no value.
TEST(refusals, of_a_copy_that_nothing_may_have_been_written_to) {
  Builder b;
  const Buffer x = b.input("X", {int64(4), int64(3)}), row = b.output("R", {int64(3)});
  const Var i0 = var("i0"), i1 = var("i1"), j = var("j"), vi = var("vi"), vj = var("vj");
  const Ref<Block> last = make<Block>(
      std::vector<IterVar>{make<IterVarNode>(Range{int64(0), int64(4)}, vi, IterType::spatial),
                           make<IterVarNode>(Range{int64(0), int64(3)}, vj, IterType::spatial)},
      std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{point_region(x, {vi, vj})},
      std::vector<BufferRegion>{point_region(row, {vj})}, std::string("last"), Stmt{},
      Stmt(make<BufferStore>(row, load(x, {vi, vj}), std::vector<Expr>{vj}, Expr())));
  Stmt s = make<BlockRealize>(std::vector<Expr>{i0 * 3 + i1, j}, i0 * 3 + i1 < 4, last);
  for (const auto& [v, n] : {std::pair{j, 3}, std::pair{i1, 3}, std::pair{i0, 2}})
    s = make<For>(v, int64(0), int64(n), ForKind::serial, s);
  b.add(s);
  Start start(b.build(), "last");
  EXPECT_EQ(reason(start.schedule.write_at(start.loops[1], start.block, 0, "local")),
            "cannot cache what block 'last' writes: which elements of 'R' it writes is not an exact region");
  // In all iterations of the inner loop some are inside.
  EXPECT_EQ(reason(start.schedule.write_at(start.loops[0], start.block, 0, "local")), "accepted");
}

// Y[5 + v] for v below 3, and then Y[v] for v below 5.
Function two_parts() {
  Builder b;
  const Buffer x = b.input("X", {int64(8)}), y = b.output("Y", {int64(8)});
  for (const auto& [name, start, count] : {std::tuple{"end", 5, 3}, std::tuple{"begin", 0, 5}}) {
    const Var i = ir::var("i"), vi = ir::var("vi");
    const Expr at = start ? vi + start : Expr(vi);
    const Ref<Block> block = make<Block>(
        std::vector<IterVar>{make<IterVarNode>(Range{int64(0), int64(count)}, vi, IterType::spatial)},
        std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{point_region(x, {at})},
        std::vector<BufferRegion>{point_region(y, {at})}, std::string(name), Stmt{},
        Stmt(make<BufferStore>(y, load(x, {at}), std::vector<Expr>{at}, Expr())));
    b.add(make<For>(i, int64(0), int64(count), ForKind::serial,
                    Stmt(make<BlockRealize>(std::vector<Expr>{i}, boolean(true), block))));
  }
  return b.build();
}

TEST(refusals, of_copies_beyond_a_tail) {
  const Function f = two_parts();
  Start s(f, "begin");
  ASSERT_TRUE(s.schedule.split(s.loops[0], {Factor(), int64_t{3}}));
  EXPECT_EQ(reason(s.schedule.cache_write(s.block, 0, "local")), "accepted");
  EXPECT_EQ(tir::testing::difference(f, s.schedule.mod().find_as<PrimFunc>("main"), 1), "");
  Start end(f, "end");
  ASSERT_TRUE(end.schedule.split(end.loops[0], {Factor(), int64_t{2}}));
  EXPECT_EQ(reason(end.schedule.cache_write(end.block, 0, "local")),
            "cannot cache what block 'end' writes: which elements of 'Y' it writes is not an exact region");
}

TEST(refusals, of_placements_behind_a_tail) {
  Builder b;
  const Buffer x = b.input("X", {int64(2), int64(5)}), t = b.inner("T", {int64(2), int64(5)}),
               y = b.output("Y", {int64(2), int64(5)});
  b.compute("first", t, [&](const std::vector<Expr>& i) { return load(x, i) + load(x, i); });
  b.compute("second", y, [&](const std::vector<Expr>& i) { return load(t, i) + load(t, i); });
  const Function f = b.build();
  Start s(f, "second");
  const BlockRV first = s.schedule.get_block("first").value_or_throw();
  const std::vector<LoopRV> rows = s.schedule.split(s.loops[0], {Factor(), int64_t{1}}).value_or_throw();
  ASSERT_TRUE(s.schedule.compute_at(first, rows[0], true));
  const LoopRV unit = s.schedule.get_loops(first).value_or_throw()[1];
  ASSERT_TRUE(s.schedule.split(rows[0], {Factor(), int64_t{3}}));
  EXPECT_EQ(reason(s.schedule.reverse_compute_at(s.block, unit)),
            "cannot compute block 'second' at loop 'ax_vi': where its predicate ends its own loops could not be told");
  EXPECT_EQ(tir::testing::difference(f, s.schedule.mod().find_as<PrimFunc>("main"), 1), "");
}

// A part of a loop does not become more than that part where it is computed for its reader.
TEST(refusals, of_placing_more_than_a_part) {
  const Function f = testing::dense(int64(8), int64(6), int64(4));
  Start s(f, "bias_add");
  ASSERT_TRUE(s.schedule.loop_partition(s.loops[1], {int64_t{1}, Factor()}));
  const BlockRV relu = s.schedule.get_block("relu").value_or_throw();
  const LoopRV column = s.schedule.get_loops(relu).value_or_throw()[1];
  EXPECT_EQ(reason(s.schedule.compute_at(s.block, column)), "accepted") << "only where the part is read";
  EXPECT_EQ(tir::testing::difference(f, s.schedule.mod().find_as<PrimFunc>("main"), 1), "");
  const std::string text = tir::function_text(s.schedule.mod().find_as<PrimFunc>("main"));
  EXPECT_NE(text.find("T.where(j < 1)"), std::string::npos) << text;
}

// A[v + 1] doubled for v below 2, of four elements: its copy holds two, and of those no more may be copied on.
TEST(refusals, of_copying_what_was_never_written) {
  Builder b;
  const Buffer a = b.output("A", {int64(4)});
  const Var i = ir::var("i"), vi = ir::var("vi");
  const std::vector<Expr> at{vi + 1};
  const Ref<Block> block =
      make<Block>(std::vector<IterVar>{make<IterVarNode>(Range{int64(0), int64(2)}, vi, IterType::spatial)},
                  std::vector<Buffer>{}, std::vector<MatchBufferRegion>{},
                  std::vector<BufferRegion>{point_region(a, at)}, std::vector<BufferRegion>{point_region(a, at)},
                  std::string("double"), Stmt{}, Stmt(make<BufferStore>(a, load(a, at) + load(a, at), at, Expr())));
  b.add(make<For>(i, int64(0), int64(2), ForKind::serial,
                  Stmt(make<BlockRealize>(std::vector<Expr>{i}, boolean(true), block))));
  Start s(b.build(), "double");
  const BlockRV out = s.schedule.cache_inplace(s.block, 0, "local").value_or_throw()[1];
  const LoopRV elements = s.schedule.get_loops(out).value_or_throw()[0];
  const std::vector<LoopRV> parts = s.schedule.split(elements, {int64_t{3}, Factor(), int64_t{2}}).value_or_throw();
  EXPECT_EQ(reason(s.schedule.read_at(parts[0], out, 0, "local")),
            "cannot cache what block 'A_out' reads: which elements of 'A_local' it reads is not an exact region");
}

TEST(refusals, of_maps_of_caches) {
  Start s = gemm();
  EXPECT_EQ(reason(s.schedule.reindex_cache_read(s.block, 0, "local", map_of("lambda i, j: (i, j)"))),
            "index map 'lambda i0, i1: (i0, i1)' takes 2 variables where block 'matmul' has 3");
  EXPECT_EQ(reason(s.schedule.reindex_cache_read(s.block, 0, "local", map_of("lambda i, j, k: (i, j, k)"))),
            "index map 'lambda i0, i1, i2: (i0, i1, i2)' uses the axis 'vs1', on which the buffer's indices do not "
            "depend");
  EXPECT_EQ(reason(s.schedule.reindex_cache_read(s.block, 0, "local", map_of("lambda i, j, k: (k, i)"))), "accepted");
  EXPECT_EQ(reason(s.schedule.reindex_cache_write(s.block, 0, "local", map_of("lambda i, j, k: (i * 6 + j,)"))),
            "accepted");
}

TEST(refusals, of_memory) {
  Start s = dense("matmul");
  EXPECT_EQ(reason(s.schedule.storage_align(s.block, 0, 2, 4, 0)),
            "cannot align the rows of 'C': it has 2 axes, there is no axis 2");
  EXPECT_EQ(reason(s.schedule.storage_align(s.block, 0, 0, 0, 0)),
            "cannot align the rows of 'C': factor 0 is not positive");
  EXPECT_EQ(reason(s.schedule.storage_align(s.block, 0, 0, 4, 4)),
            "cannot align the rows of 'C': offset 4 is not below the factor 4");
  EXPECT_EQ(reason(s.schedule.unsafe_set_dtype(s.block, 0, "number")), "there is no type 'number'");
  EXPECT_EQ(reason(s.schedule.unsafe_set_dtype(s.block, 0, "bool")),
            "cannot set the type of 'C': float32 cannot be kept as bool");
  EXPECT_EQ(reason(s.schedule.unsafe_set_dtype(s.block, 0, "float64")), "accepted");
  EXPECT_EQ(reason(s.schedule.storage_align(s.block, 0, 0, 4, 1)), "accepted");
  EXPECT_EQ(reason(s.schedule.storage_align(s.block, 0, 0, 4, 1)),
            "cannot align the rows of 'C': it is read in vectors, through a view, or has strides");
}

TEST(refusals, of_axes_indices_and_ranges) {
  Start s = dense("matmul");
  const auto separated = [&](std::vector<int64_t> at) {
    return reason(s.schedule.set_axis_separator(s.block, {.writes = true}, at));
  };
  EXPECT_EQ(separated({2}), "cannot separate the axes of 'C': it has 2 axes, and none begin a group at 2");
  EXPECT_EQ(separated({1, 1}), "cannot separate the axes of 'C': separator 1 does not come after 1");
  EXPECT_EQ(separated({1}), "accepted");
  EXPECT_EQ(separated({}), "accepted");
  EXPECT_EQ(reason(s.schedule.storage_align(s.block, 0, 0, 16, 0)), "accepted");
  EXPECT_EQ(separated({1}), "cannot separate the axes of 'C': its strides or its offset say where it lies");

  EXPECT_EQ(reason(s.schedule.cache_index(s.block, "local", -1)),
            "cannot cache the indices of block 'matmul': the threshold -1 is negative");
  EXPECT_EQ(reason(s.schedule.cache_index(s.schedule.get_block("root").value_or_throw(), "local", 0)),
            "cannot cache the indices of block 'root': it is the root block");
  EXPECT_TRUE(s.schedule.cache_index(s.block, "local", 0).value_or_throw().empty());

  const auto said = [&](const char* kind, int64_t number, const char* map) {
    return s.schedule.annotate_buffer_access(s.block, number, kind, parse_index_map(map).value_or_throw());
  };
  EXPECT_EQ(reason(said("both", 0, "lambda i, j, k: (i,)")), "an access is \"read\" or \"write\", not \"both\"");
  EXPECT_EQ(reason(said("read", 2, "lambda i, j, k: (i, j)")),
            "cannot say what block 'matmul' reads: it reads 2 buffers, there is no number 2");
  EXPECT_EQ(reason(said("read", 0, "lambda i: (i, i + 1, 0, 4)")),
            "cannot say what block 'matmul' reads: the ranges are of 1 variables, and it has 3");
  EXPECT_EQ(reason(said("read", 0, "lambda i, j, k: (i, i + 1)")),
            "cannot say what block 'matmul' reads: 2 bounds are given for the 2 axes of 'A', two are needed for each");
  IndexMap open = parse_index_map("lambda i, j, k: (i, i + 1, 0, 4)").value_or_throw();
  open.to[3] = ir::size_var("n");
  EXPECT_EQ(reason(s.schedule.annotate_buffer_access(s.block, 0, "read", open)),
            "cannot say what block 'matmul' reads: the ranges use 'n', which is no variable of it");
  EXPECT_EQ(refusal(said("read", 0, "lambda i, j, k: (i, i + 1, 0, 3)")),
            "cannot say what block 'matmul' reads: 'A' is touched outside of the given ranges\n"
            "for instance where s0 = 0, s1 = 0, k = 3\n");
  EXPECT_EQ(reason(said("write", 0, "lambda i, j, k: (i, i + 1, j + 1, j + 2)")),
            "cannot say what block 'matmul' writes: 'C' is touched outside of the given ranges");
  EXPECT_EQ(reason(s.schedule.annotate(s.block, "explicit_read_region", int64_t{0})),
            "the annotation 'explicit_read_region' is only set by the primitive it is of");
  EXPECT_EQ(reason(said("read", 0, "lambda i, j, k: (i, i + 1, 0, 4)")), "accepted");
}

TEST(refusals, of_prefetching) {
  Start s(testing::matmul(int64(8), int64(6), int64(4)), "matmul");
  const auto tried = [&](int64_t buffer, size_t loop, size_t at, const Prefetch& what) {
    return reason(s.schedule.prefetch(s.block, buffer, s.loops[loop], s.loops[at], what));
  };
  EXPECT_EQ(tried(2, 0, 2, {}), "block 'matmul' reads 2 buffers, there is no number 2");
  EXPECT_EQ(tried(0, 2, 0, {}), "cannot prefetch 'A' for block 'matmul': loop 's0' is around loop 'k'");
  EXPECT_EQ(tried(0, 0, 2, {.level = 4}), "cannot prefetch 'A' for block 'matmul': there is no level 4 of cache");
  EXPECT_EQ(tried(0, 0, 2, {.begin = 2, .end = 2, .of = 3}),
            "cannot prefetch 'A' for block 'matmul': there are no pieces 2 to 2 of 3");
  EXPECT_EQ(tried(0, 0, 2, {.turns = 0}), "cannot prefetch 'A' for block 'matmul': it cannot be asked for in 0 turns");
  EXPECT_EQ(
      tried(0, 1, 2, {}),
      "cannot prefetch 'A' for block 'matmul': an iteration of loop 's1' does not read a constant distance behind "
      "the one before");
  EXPECT_EQ(tried(1, 1, 2, {}),
            "cannot prefetch 'B' for block 'matmul': what an iteration of loop 's1' reads is not one piece of memory");
  EXPECT_EQ(tried(0, 0, 2, {}), "accepted");
  Start far(testing::matmul(int64(8), int64(6), int64(4000)), "matmul");
  EXPECT_EQ(reason(far.schedule.prefetch(far.block, 0, far.loops[0], far.loops[0])),
            "cannot prefetch 'A' for block 'matmul': loop 's0' would ask for 250 lines of memory in each iteration");
  EXPECT_EQ(reason(far.schedule.prefetch(far.block, 0, far.loops[0], far.loops[0], {.in_turn = true})),
            "cannot prefetch 'A' for block 'matmul': what an iteration of loop 's0' reads lies in too many lines of "
            "memory");
}

TEST(refusals, of_padding) {
  Start s(testing::conv2d({}), "conv");
  EXPECT_EQ(reason(s.schedule.decompose_padding(s.block, s.loops[0])),
            "cannot decompose the padding of block 'conv': it is a reduction");
  const BlockRV pad = s.schedule.get_block("pad").value_or_throw(),
                relu = s.schedule.get_block("relu").value_or_throw();
  EXPECT_EQ(reason(s.schedule.decompose_padding(relu, s.schedule.get_loops(relu).value_or_throw()[0])),
            "cannot decompose the padding of block 'relu': its value is no choice between a value and a constant");
  EXPECT_EQ(reason(s.schedule.decompose_padding(pad, s.loops[0])),
            "cannot decompose the padding of block 'pad': loop 's0' is not around it");
  EXPECT_EQ(reason(s.schedule.decompose_padding(pad, s.schedule.get_loops(pad).value_or_throw()[1])), "accepted");
  EXPECT_EQ(reason(s.schedule.split_padding(s.block)), "cannot split the padding of block 'conv': it is a reduction");
  EXPECT_EQ(reason(s.schedule.split_padding(relu)),
            "cannot split the padding of block 'relu': its value is no choice between two values");
  const Var n = ir::size_var("n"), m = ir::size_var("m");
  Builder open;
  const Buffer given = open.input("X", {n, m}), padded = open.output("P", {n + 2, m});
  open.compute("pad", padded, [&](const std::vector<Expr>& i) {
    return if_then_else(logical_and(i[0] >= m, i[0] < n), load(given, {i[0], i[1]}), testing::f32(0));
  });
  Start of_any_size(open.build(), "pad");
  EXPECT_EQ(reason(of_any_size.schedule.split_padding(of_any_size.block)),
            "cannot split the padding of block 'pad': there may be less than nothing inside");
  EXPECT_EQ(reason(s.schedule.pad_einsum(s.block, {1, 1, 1, 1, 2, 2, 2})),
            "cannot pad block 'conv': index 2 of 'P' is not an axis that runs over all of it");

  Start product = gemm();
  EXPECT_EQ(reason(product.schedule.pad_einsum(product.block, {4, 4})),
            "cannot pad block 'matmul': 2 multiples for 3 axes");
  EXPECT_EQ(reason(product.schedule.pad_einsum(product.block, {4, 0, 4})),
            "cannot pad block 'matmul': multiple 0 is not positive");
  Start empty(testing::matmul(int64(4), int64(4), int64(0)), "matmul");
  EXPECT_NE(reason(empty.schedule.pad_einsum(empty.block, {3, 3, 3})).find("axis 'vk' is empty"), std::string::npos);
  EXPECT_EQ(reason(product.schedule.pad_einsum(product.block, {3, 4, 5})), "accepted");
  Builder b;
  const Buffer x = b.input("X", {int64(1)}), t = b.inner("T", {int64(1)}), y = b.output("Y", {int64(1)});
  b.compute("twice", t, [&](const std::vector<Expr>& i) { return load(x, i) + load(x, i); });
  b.compute("out", y, [&](const std::vector<Expr>& i) { return load(t, i) + load(t, i); });
  Start only(b.build(), "twice");
  ASSERT_TRUE(only.schedule.transform_layout(only.block, {.writes = true}, map_of("lambda i: (i % 3, i // 3)")));
  EXPECT_EQ(reason(only.schedule.pad_einsum(only.block, {2})),
            "cannot pad block 'twice': its axis 'vi' does not index what it writes");
  Start most(testing::softmax(int64(4), int64(6)), "max");
  EXPECT_EQ(reason(most.schedule.pad_einsum(most.block, {1, 4})),
            "cannot pad block 'max': zeros along its axis 'vk' could change the result");
}

TEST(refusals, of_reductions) {
  Start s = gemm();
  EXPECT_EQ(reason(s.schedule.rfactor(s.loops[0], 0)),
            "cannot rfactor loop 's0': it is no reduce loop of block 'matmul'");
  EXPECT_EQ(reason(s.schedule.rfactor(s.loops[2], 5)), "cannot rfactor loop 'k': factor_axis 5 is not within [-3, 2]");
  const std::vector<LoopRV> parts = s.schedule.loop_partition(s.loops[2], {int64_t{1}, Factor()}).value_or_throw();
  const BlockRV second = s.schedule.get_child_blocks(parts[1]).value_or_throw()[0];
  EXPECT_EQ(
      reason(s.schedule.decompose_reduction(second, parts[1])),
      "cannot decompose block 'matmul_part1': its loops do not start where its reduce axes do, so its init does not "
      "run there");
  EXPECT_EQ(reason(s.schedule.decompose_reduction(s.block, parts[0])), "accepted");
  EXPECT_EQ(reason(s.schedule.decompose_reduction(s.block, parts[0])),
            "cannot decompose block 'matmul_update': it has no init");
}

TEST(refusals, of_a_split_without_the_predicate_that_it_needs) {
  Start s = gemm();
  EXPECT_EQ(reason(s.schedule.split(s.loops[0], {Factor(), int64_t{3}}, true)),
            "cannot split loop 's0' without a predicate: the factors' product is not its extent 8");
  EXPECT_EQ(reason(s.schedule.split(s.loops[0], {Factor(), int64_t{3}})), "accepted");
}

TEST(refusals, of_vectors_of_unknown_length) {
  const Var n = ir::size_var("n");
  Start s(testing::matmul(n, int64(4), int64(4)), "matmul");
  EXPECT_EQ(reason(s.schedule.vectorize(s.loops[0])), "cannot vectorize loop 's0': its extent is not a constant");
  EXPECT_EQ(reason(s.schedule.unroll(s.loops[0])), "cannot unroll loop 's0': its extent is not a constant");
}

}  // namespace
}  // namespace lathe::schedule
