#include "schedule/rules/nest/work.h"

#include <gtest/gtest.h>

#include "schedule/rules/rules.h"
#include "schedule/testing/programs.h"
#include "schedule/testing/random_program.h"
#include "schedule/testing/rule_check.h"

namespace lathe::schedule {
namespace {

using testing::Builder;
using testing::machine;

Function mapped(const std::vector<int64_t>& shape, const std::function<Expr(Expr)>& value) {
  std::vector<Expr> extents;
  for (const int64_t extent : shape) extents.push_back(int64(extent));
  Builder b;
  const Buffer x = b.input("X", extents), y = b.output("Y", extents);
  b.compute("map", y, [&](const std::vector<Expr>& i) { return value(load(x, i)); });
  return b.build();
}

Expr hyperbolic_tangent(const Expr& x) { return ir::call(ir::intrinsic::tanh, x); }

// Lanes of the vectors of each part, in their order.
std::vector<int64_t> vectors_of(const Function& function, const std::string& block, int bits) {
  AnalyticDecider decider;
  const Schedule start = Schedule::create(function).value_or_throw();
  const Schedule done = schedule_function(start, machine(bits, 16), decider, {});
  std::vector<int64_t> lanes;
  for (const Work& work : works(done.function()))
    if (work.block().name.starts_with(block))
      lanes.push_back(work.loops.back()->kind == ForKind::vectorized ? *as_int(work.loops.back()->extent) : 1);
  return lanes;
}

TEST(vectors_together, are_four_of_what_is_one_chain) {
  const auto doubled = [](const Expr& x) { return x + x; };
  const auto sine = [](const Expr& x) { return ir::call(ir::intrinsic::sin, x); };
  EXPECT_EQ(vectors_of(mapped({3, 32}, hyperbolic_tangent), "map", 256), std::vector<int64_t>{32});
  EXPECT_EQ(vectors_of(mapped({3, 32}, hyperbolic_tangent), "map", 128), std::vector<int64_t>{16});
  EXPECT_EQ(vectors_of(mapped({3, 2048}, doubled), "map", 256), std::vector<int64_t>{8});
  EXPECT_EQ(vectors_of(mapped({3, 32}, sine), "map", 256), std::vector<int64_t>{8});
}

TEST(vectors_together, are_four_where_a_row_is_short) {
  const auto doubled = [](const Expr& x) { return x + x; };
  EXPECT_EQ(vectors_of(mapped({1024}, doubled), "map", 256), std::vector<int64_t>{32});
  EXPECT_EQ(vectors_of(mapped({1056}, doubled), "map", 256), std::vector<int64_t>{8});
  EXPECT_EQ(vectors_of(mapped({77}, doubled), "map", 256), (std::vector<int64_t>{32, 8, 5}));
}

// Rows of X by number, along the rows or along the numbers themselves.
Function gathered(int64_t count, int64_t columns, ir::DType numbers, bool along) {
  Builder b;
  const Buffer x = b.input("X", {int64(100), int64(columns)});
  const Buffer which = b.input("which", {int64(along ? columns : count)}, numbers);
  const Buffer y = b.output("Y", {int64(count), int64(columns)});
  b.compute("gather", y, [&](const std::vector<Expr>& i) {
    const Expr row = min(max(cast(ir::DType::int64(), load(which, {i[along ? 1 : 0]})), int64(0)), int64(99));
    return load(x, {row, i[1]});
  });
  return b.build();
}

int widest_bits_of(const Function& function) {
  const Schedule schedule = Schedule::create(function).value_or_throw();
  return widest_bits(works(schedule.function())[0]);
}

TEST(widest_bits, of_a_loop_are_those_of_what_moves_with_it) {
  for (const ir::DType numbers : {ir::DType::int64(), ir::DType::int32()}) {
    const Function rows = gathered(5, 3000, numbers, false), elements = gathered(5, 3000, numbers, true);
    EXPECT_EQ(widest_bits_of(rows), 32);
    EXPECT_EQ(widest_bits_of(elements), 64);
    EXPECT_EQ(vectors_of(rows, "gather", 256), std::vector<int64_t>{8});
    EXPECT_EQ(vectors_of(gathered(5, 64, numbers, false), "gather", 256), std::vector<int64_t>{32});
    EXPECT_EQ(testing::scheduled(gathered(5, 77, numbers, false), machine(256, 16)), "elementwise");
    EXPECT_EQ(testing::scheduled(gathered(5, 77, numbers, true), machine(256, 16)), "elementwise");
  }
}

TEST(vectors_together, leave_single_vectors_and_a_shorter_one) {
  EXPECT_EQ(vectors_of(mapped({45}, hyperbolic_tangent), "map", 256), (std::vector<int64_t>{32, 8, 5}));
  EXPECT_EQ(vectors_of(mapped({35}, hyperbolic_tangent), "map", 256), (std::vector<int64_t>{32, 3}));
  EXPECT_EQ(vectors_of(mapped({33}, hyperbolic_tangent), "map", 256), (std::vector<int64_t>{32, 1}));
  EXPECT_EQ(vectors_of(mapped({31}, hyperbolic_tangent), "map", 256), (std::vector<int64_t>{8, 7}));
  EXPECT_EQ(vectors_of(mapped({4}, hyperbolic_tangent), "map", 256), std::vector<int64_t>{4});
  EXPECT_EQ(vectors_of(mapped({3}, hyperbolic_tangent), "map", 256), std::vector<int64_t>{1});
}

TEST(vectors_together, are_as_many_as_a_sum_over_the_row_takes) {
  EXPECT_EQ(vectors_of(testing::softmax(int64(5), int64(256)), "exp", 256), std::vector<int64_t>{32});
  EXPECT_EQ(vectors_of(testing::softmax(int64(5), int64(64)), "exp", 256), std::vector<int64_t>{8});
}

TEST(vectors_together, compute_what_single_elements_do) {
  for (const auto& [bits, registers] : testing::machines)
    for (const int64_t columns : {0, 1, 15, 16, 63, 64, 65, 100, 257, 5003})
      for (const int64_t rows : {1, 3})
        EXPECT_EQ(testing::scheduled(mapped({rows, columns}, hyperbolic_tangent), machine(bits, registers)),
                  "elementwise")
            << rows << "x" << columns << testing::last_remarks;
}

// Channels of `groups` groups in turn, channels last, as a shuffle of channels leaves them.
Function shuffled(int64_t pixels, int64_t groups, int64_t channels) {
  Builder b;
  const Buffer x = b.input("X", {int64(pixels), int64(groups), int64(channels)}),
               y = b.output("Y", {int64(pixels), int64(channels), int64(groups)});
  b.compute("shuffle", y, [&](const std::vector<Expr>& i) { return load(x, {i[0], i[2], i[1]}); });
  return b.build();
}

TEST(vectorize_elementwise, puts_a_few_rows_into_each_other) {
  EXPECT_EQ(vectors_of(shuffled(6, 2, 58), "shuffle", 512), (std::vector<int64_t>{32, 20}));
  EXPECT_EQ(vectors_of(shuffled(6, 3, 16), "shuffle", 256), std::vector<int64_t>{24});
  EXPECT_EQ(vectors_of(shuffled(6, 2, 3), "shuffle", 256), std::vector<int64_t>{1}) << "too short";
  for (const auto& [bits, registers] : testing::machines)
    for (const int64_t groups : {2, 3, 4, 5})
      for (const int64_t channels : {0, 1, 3, 7, 16, 29, 58})
        EXPECT_EQ(testing::scheduled(shuffled(5, groups, channels), machine(bits, registers)), "elementwise")
            << groups << " groups of " << channels << testing::last_remarks;
}

// The largest of each row, by a loop of the block's own.
Function climbed(int64_t rows, int64_t columns) {
  return testing::from_text(fmt::format(R"(# lathe script 1
from lathe.script import tir as T

@T.prim_func
def main(X: T.Buffer(({0}, {1}), "float32"), Y: T.Buffer(({0},), "float32")):
    for i in range({0}):
        with T.block("climb"):
            v = T.axis.spatial({0}, i)
            T.reads(X[v, 0:{1}], Y[v])
            T.writes(Y[v])
            Y[v] = T.float32(0)
            for k in range({1}):
                Y[v] = T.max(Y[v], X[v, k])
)",
                                        rows, columns));
}

TEST(vectorize_elementwise, counts_what_a_block_does_by_loops_of_its_own) {
  EXPECT_EQ(testing::parallel_extents(climbed(512, 512), machine(256, 16)), std::vector<int64_t>{512});
  EXPECT_EQ(testing::parallel_extents(climbed(3, 50000), machine(256, 16)), std::vector<int64_t>{3});
  EXPECT_EQ(testing::parallel_extents(climbed(16, 16), machine(256, 16)), std::vector<int64_t>()) << "too little";
}

TEST(enough_for_threads, counts_elements_of_a_single_term) {
  const auto scaled = [](int64_t height) {
    const testing::ConvShape shape{.channels = 64,
                                   .height = height,
                                   .width = 28,
                                   .filters = 64,
                                   .kernel = 1,
                                   .padding = 0,
                                   .epilogue = false,
                                   .depthwise = true};
    return testing::parallel_extents(testing::conv2d(shape), machine(512, 32)).size();
  };
  EXPECT_EQ(scaled(28), 1) << "50,176 products";
  EXPECT_EQ(scaled(2), 0);
}

}  // namespace
}  // namespace lathe::schedule
