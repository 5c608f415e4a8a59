#include <gtest/gtest.h>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words

ir::IRModule split(const ir::IRModule& module, int vector_bits = 512) {
  target::Target target;
  target.vector_bits = vector_bits;
  return split_groups(module, target, context()).value_or_throw();
}

ir::IRModule grouped(int64_t batch, int64_t inputs, int64_t outputs, int64_t groups, const ops::ConvAttributes& how) {
  Graph g;
  const Expr x = g.input("x", Extents{batch, groups * inputs, 7, 6});
  return g.finish(g.call(ops::conv, {x, weights({groups * outputs, inputs, 3, 2}, 5)},
                         ir::with(how, [&](ops::ConvAttributes& copy) { copy.groups = groups; })));
}

std::vector<std::string> calls_of(int64_t groups) {
  std::vector<std::string> names;
  for (int64_t g = 0; g < groups; ++g) names.insert(names.end(), {"strided_slice", "nn.conv"});
  names.push_back("concat");
  return names;
}

TEST(split_groups, makes_of_programs_what_its_text_expects) {
  expect_text([](ir::IRModule module, const ir::PassContext&) -> Result<ir::IRModule> { return split(module, 32); },
              __FILE__);
}

TEST(split_groups, computes_the_same) {
  for (const auto& [batch, inputs, outputs, groups] :
       std::vector<std::array<int64_t, 4>>{{1, 2, 20, 2}, {3, 5, 19, 4}, {1, 3, 17, 3}, {0, 2, 20, 2}, {2, 2, 18, 16}})
    for (const bool strided : {false, true}) {
      ops::ConvAttributes how;
      if (strided) how.strides = {2, 3}, how.padding = {1, 0, 1, 2}, how.dilation = {2, 1};
      const ir::IRModule before = grouped(batch, inputs, outputs, groups, how), after = split(before, 32);
      EXPECT_EQ(calls(after), calls_of(groups));
      EXPECT_EQ(difference(before, after, 1e-5), "") << groups << " groups of " << inputs << " to " << outputs;
    }
}

TEST(split_groups, keeps_small_groups_and_many) {
  EXPECT_EQ(calls(split(grouped(1, 1, 16, 4, {}))), std::vector<std::string>{"nn.conv"}) << "depthwise, multiplied";
  EXPECT_EQ(calls(split(grouped(1, 4, 7, 4, {}))), std::vector<std::string>{"nn.conv"}) << "less than half a vector";
  EXPECT_EQ(calls(split(grouped(1, 4, 64, 4, {}))), std::vector<std::string>{"nn.conv"}) << "four vectors";
  EXPECT_EQ(calls(split(grouped(1, 4, 68, 4, {}))), std::vector<std::string>{"nn.conv"}) << "more, and small weights";
  EXPECT_EQ(calls(split(grouped(1, 21, 68, 4, {}))), calls_of(4)) << "weights that are larger than a nearest cache";
  EXPECT_EQ(calls(split(grouped(1, 2, 257, 4, {}))), calls_of(4)) << "more than sixteen vectors";
  EXPECT_EQ(calls(split(grouped(1, 2, 65, 17, {}))), std::vector<std::string>{"nn.conv"}) << "17 groups";
  EXPECT_EQ(calls(split(grouped(1, 2, 16, 1, {}))), std::vector<std::string>{"nn.conv"}) << "one group";
}

}  // namespace
}  // namespace lathe::graph
