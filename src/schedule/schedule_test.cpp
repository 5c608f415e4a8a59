#include "schedule/schedule.h"

#include <gtest/gtest.h>

#include "schedule/analysis/tree.h"
#include "schedule/codes.h"
#include "schedule/testing/programs.h"

namespace lathe::schedule {
namespace {

using testing::dense;
using testing::matmul;

template <class T>
std::string complaint(const Result<T>& result) {
  return result.ok() ? "accepted" : support::render(result.diagnostics());
}

TEST(schedule, handles_survive_what_keeps_their_loops) {
  Schedule sch = Schedule::create(matmul(int64(8), int64(8), int64(8))).value_or_throw();
  const BlockRV block = sch.get_block("matmul").value_or_throw();
  const std::vector<LoopRV> loops = sch.get_loops(block).value_or_throw();
  ASSERT_EQ(loops.size(), 3u);
  const std::vector<LoopRV> parts = sch.split(loops[0], {Factor(), int64_t{4}}).value_or_throw();
  EXPECT_NE(complaint(sch.get(loops[0])).find("no longer exists"), std::string::npos);
  EXPECT_EQ(sch.get(loops[1]).value_or_throw()->loop_var->name, "s1");
  EXPECT_EQ(sch.get(parts[1]).value_or_throw()->loop_var->name, "s0_1");
  EXPECT_EQ(sch.get(block).value_or_throw()->name, "matmul");
}

TEST(schedule, copies_go_their_own_ways) {
  Schedule sch = Schedule::create(matmul(int64(8), int64(8), int64(8))).value_or_throw();
  const BlockRV block = sch.get_block("matmul").value_or_throw();
  const std::vector<LoopRV> loops = sch.get_loops(block).value_or_throw();
  Schedule copy = sch;
  ASSERT_TRUE(copy.parallel(loops[0]));
  EXPECT_EQ(sch.get(loops[0]).value_or_throw()->kind, ForKind::serial);
  EXPECT_EQ(copy.get(loops[0]).value_or_throw()->kind, ForKind::parallel);
  EXPECT_EQ(sch.trace().instructions().size() + 1, copy.trace().instructions().size());
}

TEST(schedule, says_which_blocks_there_are) {
  Schedule sch = Schedule::create(dense(int64(4), int64(4), int64(4))).value_or_throw();
  const std::string text = complaint(sch.get_block("conv"));
  EXPECT_NE(text.find("function 'main' has no block named 'conv'"), std::string::npos) << text;
  EXPECT_NE(text.find("'matmul', 'bias_add', 'relu'"), std::string::npos) << text;
}

TEST(schedule, knows_producers_and_consumers) {
  Schedule sch = Schedule::create(dense(int64(4), int64(4), int64(4))).value_or_throw();
  const BlockRV middle = sch.get_block("bias_add").value_or_throw();
  const auto before = sch.get_producers(middle).value_or_throw(), after = sch.get_consumers(middle).value_or_throw();
  ASSERT_EQ(before.size(), 1u);
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(sch.get(before[0]).value_or_throw()->name, "matmul");
  EXPECT_EQ(sch.get(after[0]).value_or_throw()->name, "relu");
  const auto outputs = sch.get_output_blocks(sch.get_block("root").value_or_throw()).value_or_throw();
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(sch.get(outputs[0]).value_or_throw()->name, "relu");
}

TEST(schedule, refuses_a_block_that_does_not_declare_what_it_touches) {
  const Function honest = matmul(int64(4), int64(4), int64(4));
  const Stmt body = honest->body;
  Stmt lie;
  each_statement(body, [&](const Stmt& s) {
    const auto* block = s.as<Block>();
    if (block && block->name == "matmul")
      lie = replace(body, s, with(*block, [](Block& copy) { copy.reads.pop_back(); }));
  });
  EXPECT_NE(
      complaint(Schedule::create(with_body(honest, lie))).find("block 'matmul' reads 'B' outside what it declares"),
      std::string::npos);
}

TEST(schedule, does_not_ask_a_block_to_declare_what_never_runs) {
  for (const int64_t n : {0, 2}) {
    testing::Builder b;
    const Buffer x = b.input("X", {int64(4)}), y = b.output("Y", {int64(4)});
    const Var i = ir::var("i"), vi = ir::var("vi"), j = ir::var("j");
    const Stmt once = make<BufferStore>(y, load(x, {vi}), std::vector<Expr>{vi}, Expr());
    const Stmt never =
        make<For>(j, int64(0), int64(n), ForKind::serial,
                  Stmt(make<BufferStore>(y, load(x, {vi + j + 1}), std::vector<Expr>{vi + j + 1}, Expr())));
    const Ref<Block> block = make<Block>(
        std::vector<IterVar>{make<IterVarNode>(Range{int64(0), int64(4)}, vi, IterType::spatial)},
        std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{point_region(x, {vi})},
        std::vector<BufferRegion>{point_region(y, {vi})}, std::string("both"), Stmt{}, seq({once, never}));
    b.add(make<For>(i, int64(0), int64(4), ForKind::serial,
                    Stmt(make<BlockRealize>(std::vector<Expr>{i}, boolean(true), block))));
    EXPECT_EQ(Schedule::create(b.build()).ok(), n == 0) << n;
  }
}

TEST(schedule, refuses_a_module_without_tensor_functions) {
  EXPECT_NE(complaint(Schedule::create(ir::IRModule())).find("no tensor function"), std::string::npos);
}

TEST(trace, prints_and_replays) {
  const Function f = dense(int64(10), int64(12), int64(7));
  Schedule sch = Schedule::create(f).value_or_throw();
  AnalyticDecider decider;
  const BlockRV block = sch.get_block("matmul").value_or_throw();
  const std::vector<LoopRV> loops = sch.get_loops(block).value_or_throw();
  const ExprRV tile = sch.decide(decider, {"test", "tile", "main", {2, 4, 8}, 4}).value_or_throw();
  const std::vector<LoopRV> parts = sch.split(loops[1], {Factor(), tile}).value_or_throw();
  ASSERT_TRUE(sch.reorder({loops[2], parts[1]}));
  ASSERT_TRUE(sch.vectorize(parts[1]));
  ASSERT_TRUE(sch.compute_inline(sch.get_block("bias_add").value_or_throw()));
  ASSERT_TRUE(sch.annotate(loops[0], "note", "a \"quoted\" text"));
  const std::string text = sch.trace().as_python();
  EXPECT_NE(text.find("v4 = sch.sample_categorical(candidates=[2, 4, 8], decision=1, name=\"test.tile\")\n"
                      "l5, l6 = sch.split(l2, factors=[None, v4])\n"
                      "sch.reorder(l3, l6)\nsch.vectorize(l6)\n"),
            std::string::npos)
      << text;
  Schedule again = Schedule::create(f).value_or_throw();
  const Trace read = parse_trace(text).value_or_throw();
  EXPECT_EQ(read.as_python(), text);
  ASSERT_TRUE(read.apply(again)) << complaint(read.apply(again));
  EXPECT_EQ(ir::first_difference(again.mod(), sch.mod()).value_or(""), "");
  EXPECT_EQ(again.trace().as_python(), text);
}

TEST(trace, says_where_a_text_is_wrong) {
  EXPECT_NE(complaint(parse_trace("b0 = sch.get_block(\"x\")\nl1 = sch.nothing(b0)")).find("trace, line 2, column 17"),
            std::string::npos);
  for (const char* text : {"b0 =", "sch", "sch.", "sch.split(", "sch.split(l0", "sch.split(l0,", "= sch.fuse(l1)",
                           "sch.split(l0, factors=[[[[[[[[[[[1]]]]]]]]]]])", "x9 = sch.fuse(l0)", "sch.fuse(l0) l1",
                           "sch.fuse(\"abc)", "sch.fuse(-)", "sch.fuse(99999999999999999999)"})
    EXPECT_FALSE(parse_trace(text)) << text;
}

TEST(trace, a_replay_refuses_what_does_not_fit) {
  Schedule sch = Schedule::create(matmul(int64(4), int64(4), int64(4))).value_or_throw();
  const char* const wrong[] = {"sch.parallel(l0)",
                               "sch.parallel(3)",
                               "b0 = sch.get_block(\"matmul\")\nsch.parallel(b0)",
                               "b0 = sch.get_block(\"matmul\")\nl1 = sch.get_loops(b0)",
                               "sch.fuse()",
                               "sch.reorder()",
                               "b0 = sch.get_block(\"matmul\")\nl1, l2, l3 = sch.get_loops(b0)\nsch.split(l1)",
                               "v0 = sch.sample_categorical(candidates=[1], decision=1)",
                               "sch.work_on(\"other\")",
                               "sch.peel(l0)",
                               "sch.strip_mine(l0)",
                               "sch.annotate(l0)",
                               "sch.cache_read(b0, 1)"};
  for (const char* text : wrong) {
    Schedule copy = sch;
    const auto trace = parse_trace(text);
    ASSERT_TRUE(trace.ok()) << text << complaint(trace);
    EXPECT_FALSE(trace->apply(copy)) << text;
  }
}

}  // namespace
}  // namespace lathe::schedule
