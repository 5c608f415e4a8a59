// Every code of the room, by a refusal that carries it.
#include "schedule/codes.h"

#include <gtest/gtest.h>

#include "schedule/instruction.h"
#include "schedule/testing/programs.h"

namespace lathe::schedule {
namespace {

template <class T>
std::string_view code(const Result<T>& result) {
  return result.ok() ? "accepted" : result.diagnostics()[0].code.name;
}

struct Started {
  Schedule schedule = Schedule::create(testing::dense(int64(8), int64(6), int64(4))).value_or_throw();
  BlockRV matmul = schedule.get_block("matmul").value_or_throw(),
          bias = schedule.get_block("bias_add").value_or_throw();
  std::vector<LoopRV> loops = schedule.get_loops(matmul).value_or_throw();
  std::vector<LoopRV> bias_loops = schedule.get_loops(bias).value_or_throw();
};

TEST(codes, of_names_and_handles) {
  Started s;
  EXPECT_EQ(code(s.schedule.work_on("other")), "schedule-no-function");
  EXPECT_EQ(code(s.schedule.get_block("nothing")), "schedule-no-block");
  EXPECT_EQ(code(s.schedule.parallel(LoopRV{999})), "schedule-gone");
  ASSERT_TRUE(s.schedule.fuse({s.loops[0], s.loops[1]}));
  EXPECT_EQ(code(s.schedule.parallel(s.loops[1])), "schedule-gone");
  EXPECT_EQ(code(s.schedule.split(s.loops[2], {})), "schedule-bad-argument");
}

TEST(codes, of_structure_and_order) {
  Started s;
  EXPECT_EQ(code(s.schedule.fuse({s.loops[0], s.bias_loops[1]})), "schedule-not-nested");
  EXPECT_EQ(code(s.schedule.parallel(s.loops[2])), "schedule-dependence");
  ASSERT_TRUE(s.schedule.parallel(s.loops[0]));
  EXPECT_EQ(code(s.schedule.parallel(s.loops[0])), "schedule-loop-kind");
  EXPECT_EQ(code(s.schedule.compute_inline(s.matmul)), "schedule-not-inlinable");
  EXPECT_EQ(code(s.schedule.compute_at(s.bias, s.loops[0])), "schedule-region");
}

TEST(codes, of_declared_accesses_that_the_body_exceeds) {
  testing::Builder b;
  const Buffer a = b.output("A", {int64(6)});
  const Var i = ir::var("i"), v = ir::var("v");
  const Ref<Block> block =
      make<Block>(std::vector<IterVar>{make<IterVarNode>(Range{int64(0), int64(5)}, v, IterType::spatial)},
                  std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{},
                  std::vector<BufferRegion>{tir::point_region(a, {v})}, std::string("step"), Stmt{},
                  Stmt(make<BufferStore>(a, testing::f32(1), std::vector<Expr>{v + 1}, Expr())));
  b.add(make<For>(i, int64(0), int64(5), ForKind::serial,
                  make<BlockRealize>(std::vector<Expr>{i}, boolean(true), block)));
  EXPECT_EQ(code(Schedule::create(b.build())), "schedule-access");
}

TEST(codes, of_traces) {
  EXPECT_EQ(code(parse_trace("b0 = sch.get_block(")), "schedule-trace");
  Started s;
  EXPECT_EQ(code(parse_trace("sch.parallel(l7)").value_or_throw().apply(s.schedule)), "schedule-trace");
  Trace numbers;
  numbers.append({.kind = find_instruction_kind("get_block"), .inputs = {"matmul"}, .attributes = {}, .outputs = {3}});
  EXPECT_EQ(code(numbers.check()), "schedule-trace");
  EXPECT_EQ(code(numbers.apply(s.schedule)), "schedule-trace");
}

}  // namespace
}  // namespace lathe::schedule
