// Decisions about places, and what a user hides from the proofs.
#include <gtest/gtest.h>

#include "schedule/testing/programs.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

struct Dense {
  Function original = testing::dense(int64(5), int64(6), int64(4));
  Schedule sch = Schedule::create(original).value_or_throw();
  BlockRV matmul = sch.get_block("matmul").value_or_throw(), bias = sch.get_block("bias_add").value_or_throw();
  std::string difference() const { return tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3); }
};

TEST(sample_compute_location, offers_the_places_that_are_legal) {
  Dense d;
  // A reduction is not inlined; it may run where it is, or in either loop of the block that reads it.
  EXPECT_EQ(d.sch.compute_locations(d.matmul).value_or_throw(), (std::vector<int64_t>{-1, 0, 1}));
  EXPECT_EQ(d.sch.compute_locations(d.bias).value_or_throw(), (std::vector<int64_t>{-2, -1, 0, 1}));
  for (const int64_t decision : {-2, -1, 0, 1}) {
    Dense each;
    const LoopRV place = each.sch.sample_compute_location(each.bias, decision).value_or_throw();
    ASSERT_TRUE(each.sch.compute_at(each.bias, place).ok()) << decision;
    EXPECT_EQ(each.difference(), "") << decision;
    Schedule again = Schedule::create(each.original).value_or_throw();
    ASSERT_TRUE(parse_trace(each.sch.trace().as_python()).value_or_throw().apply(again).ok());
    EXPECT_EQ(ir::first_difference(again.mod(), each.sch.mod()), std::nullopt);
  }
}

TEST(sample_compute_location, gives_places_that_are_no_loops) {
  Dense d;
  const LoopRV root = d.sch.sample_compute_location(d.bias, Schedule::root_location).value_or_throw();
  const auto refused = d.sch.parallel(root);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.diagnostics()[0].message.find("stands for a place to compute at"), std::string::npos);
  const auto beyond = d.sch.sample_compute_location(d.bias, 2);
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.diagnostics()[0].message,
            "decision 2 is no place to compute block 'bias_add' at: its consumer has 2 loops");
}

TEST(sample_categorical, is_drawn_with_probabilities) {
  Dense d;
  const ExprRV tile = d.sch.sample_categorical({2, 3, 6}, {0.25, 0.25, 0.5}, 1).value_or_throw();
  EXPECT_EQ(d.sch.get(tile).value_or_throw(), 3);
  EXPECT_NE(d.sch.trace().as_python().find(
                "v2 = sch.sample_categorical(candidates=[2, 3, 6], probs=[0.25, 0.25, 0.5], decision=1)\n"),
            std::string::npos);
  const auto why = [&](std::vector<double> probs, int64_t decision) {
    return d.sch.sample_categorical({2, 3, 6}, probs, decision).diagnostics()[0].message;
  };
  EXPECT_EQ(why({0.5, 0.5}, 0), "3 candidates with 2 probabilities");
  EXPECT_EQ(why({0.5, -0.5, 1}, 0), "-0.5 is no probability");
  EXPECT_EQ(why({}, 3), "the decision 3 is no index of 3 candidates");
  EXPECT_EQ(why({}, -1), "the decision -1 is no index of 3 candidates");
}

TEST(schedule, forgets_handles) {
  Dense d;
  const LoopRV loop = d.sch.get_loops(d.matmul).value_or_throw()[0];
  const ExprRV number = d.sch.sample_categorical({2}, {1}, 0).value_or_throw();
  ASSERT_TRUE(d.sch.remove(loop));
  ASSERT_TRUE(d.sch.remove(number));
  EXPECT_EQ(d.sch.parallel(loop).diagnostics()[0].message, fmt::format("handle {} was removed", loop.index));
  EXPECT_FALSE(d.sch.get(number));
  EXPECT_FALSE(d.sch.remove(loop)) << "it is forgotten already";
  EXPECT_FALSE(d.sch.remove(int64_t{3}));
  EXPECT_TRUE(d.sch.parallel(d.sch.get_loops(d.matmul).value_or_throw()[0])) << "the loop itself stays";
}

TEST(annotate, takes_numbers_texts_and_lists_of_them) {
  Dense d;
  const ExprRV decided = d.sch.sample_categorical({4, 8}, {}, 1).value_or_throw();
  const Argument list = Argument::List{1, 2.5, "text", Argument::List{true, decided}};
  ASSERT_TRUE(d.sch.annotate(d.matmul, "list", list));
  const ir::Value* value = d.sch.get(d.matmul).value_or_throw()->annotations.find("list");
  ASSERT_TRUE(value && value->get<ir::Value::List>());
  EXPECT_EQ(*value->get<ir::Value::List>()->at(3).get<ir::Value::List>()->at(1).get<int64_t>(), 8);
  Schedule again = Schedule::create(d.original).value_or_throw();
  const Trace trace = parse_trace(d.sch.trace().as_python()).value_or_throw();
  ASSERT_TRUE(trace.apply(again));
  EXPECT_EQ(ir::first_difference(again.mod(), d.sch.mod()).value_or(""), "");
  ASSERT_TRUE(d.sch.unannotate(d.matmul, "list"));
  EXPECT_TRUE(d.sch.get(d.matmul).value_or_throw()->annotations.empty());
  EXPECT_EQ(d.sch.annotate(d.matmul, "none", Argument()).diagnostics()[0].message,
            "an annotation is a number, a text or a list of them");
}

// B[0, …] = A, one element after the other into the same place.
Function overwriting() {
  testing::Builder b;
  const Buffer a = b.input("A", {int64(6)}), c = b.output("B", {int64(1)}), d = b.output("D", {int64(6)});
  const Var i = ir::var("i"), v = ir::var("v");
  const Ref<Block> block = make<Block>(
      std::vector<IterVar>{make<IterVarNode>(Range{int64(0), int64(6)}, v, IterType::spatial)}, std::vector<Buffer>{},
      std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{point_region(a, {v})},
      std::vector<BufferRegion>{point_region(c, {int64(0)}), point_region(d, {v})}, std::string("last"), Stmt{},
      seq({make<BufferStore>(c, load(a, {v}), std::vector<Expr>{int64(0)}, Expr()),
           make<BufferStore>(d, load(a, {v}), std::vector<Expr>{v}, Expr())}));
  b.add(make<For>(i, int64(0), int64(6), ForKind::serial,
                  make<BlockRealize>(std::vector<Expr>{i}, boolean(true), block)));
  return b.build();
}

TEST(unsafe_hide_buffer_access, takes_an_access_out_of_the_proofs) {
  Schedule sch = Schedule::create(overwriting()).value_or_throw();
  const BlockRV block = sch.get_block("last").value_or_throw();
  const LoopRV loop = sch.get_loops(block).value_or_throw()[0];
  EXPECT_FALSE(Schedule(sch).parallel(loop).ok());
  ASSERT_TRUE(sch.unsafe_hide_buffer_access(block, "write", {0}).ok());
  EXPECT_EQ(sch.get(block).value_or_throw()->writes.size(), 1u);
  // On the user's word alone: which iteration comes last is not settled any more.
  EXPECT_TRUE(sch.parallel(loop).ok());
  EXPECT_TRUE(Schedule::create(sch.mod()).ok()) << "what is hidden is not asked for again";
}

TEST(unsafe_hide_buffer_access, refuses_what_is_not_declared) {
  Schedule sch = Schedule::create(overwriting()).value_or_throw();
  const BlockRV block = sch.get_block("last").value_or_throw();
  EXPECT_EQ(sch.unsafe_hide_buffer_access(block, "read", {1}).diagnostics()[0].message,
            "block 'last' declares that it reads 1 buffers, there is no number 1");
  EXPECT_EQ(sch.unsafe_hide_buffer_access(block, "opaque", {0}).diagnostics()[0].message,
            "an access is \"read\" or \"write\", not \"opaque\"");
  EXPECT_EQ(sch.annotate(block, "tensor_intrin", std::string("x")).diagnostics()[0].message,
            "the annotation 'tensor_intrin' is only set by the primitive it is of");
}

}  // namespace
}  // namespace lathe::schedule
