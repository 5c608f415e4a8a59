#include <gtest/gtest.h>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words

constexpr double close_sums = 1e-5;  // what is summed in another order

ir::IRModule merged(const ir::IRModule& module) {
  const ir::IRModule after = merge_padding(module, context()).value_or_throw();
  return eliminate_dead_code(after, context()).value_or_throw();
}

TEST(merge_padding, makes_of_programs_what_its_text_expects) { expect_text(merge_padding, __FILE__); }

// A symbolic height: the padded extent and the convolution's are the same expression.
TEST(merge_padding, merges_around_symbolic_extents) {
  Graph g;
  const Expr x = g.input("x", {ir::int64(1), ir::int64(2), ir::size_var("n"), ir::int64(5)});
  const Expr wide = g.call(ops::pad, {x, shape({0, 0, 3, 0}), shape({0, 0, 1, 2})}, ir::make<ops::PadAttributes>());
  const auto attributes = ir::make<ops::ConvAttributes>(Extents{2, 1}, Extents{}, Extents{1, 2}, 2);
  const auto before = g.finish(g.call(ops::conv, {wide, weights({4, 1, 3, 3}, 1)}, attributes));
  const auto after = merged(before);
  EXPECT_EQ(calls(after), std::vector<std::string>{"nn.conv"});
  EXPECT_EQ(difference(before, after, close_sums), "");
}

// The average counts the pad's zeros, but not the padding it has.
TEST(merge_padding, keeps_an_average_that_leaves_its_own_padding_out) {
  const auto calls_left = [](const ops::PoolAttributes& attributes) {
    Graph g;
    const Expr x = g.input("x", Extents{1, 1, 6, 6});
    const Expr wide = g.call(ops::pad, {x, shape({0, 0, 1, 1}), shape({0, 0, 1, 0})}, ir::make<ops::PadAttributes>());
    const auto before = g.finish(g.call(ops::avg_pool, {wide}, ir::with(attributes, [](ops::PoolAttributes& copy) {
                                          copy.pool_size = {3, 3};
                                          copy.strides = {2, 2};
                                        })));
    const auto after = merged(before);
    EXPECT_EQ(difference(before, after, close_sums), "");
    return calls(after).size();
  };
  ops::PoolAttributes attributes;
  EXPECT_EQ(calls_left(attributes), 1u);
  attributes.ceil_mode = true;
  EXPECT_EQ(calls_left(attributes), 2u);
  attributes.ceil_mode = false;
  attributes.padding = {1, 1, 0, 0};
  EXPECT_EQ(calls_left(attributes), 2u);
  attributes.count_include_pad = true;
  EXPECT_EQ(calls_left(attributes), 1u);
  attributes.auto_pad = "VALID";
  EXPECT_EQ(calls_left(attributes), 1u);
}

// The padded tensor has another reader, which still gets it.
TEST(merge_padding, leaves_the_padded_tensor_to_others) {
  Graph g;
  const Expr x = g.input("x", Extents{1, 1, 4, 4});
  const Expr wide = g.call(ops::pad, {x, shape({0, 0, 1, 1}), shape({0, 0, 1, 1})}, ir::make<ops::PadAttributes>());
  const auto before =
      g.finish(std::vector{g.call(ops::conv, {wide, weights({1, 1, 3, 3}, 1)}), g.call(ops::exp, {wide})});
  const auto after = merged(before);
  EXPECT_EQ(find_call(after, "nn.conv")->args[0].as<relax::VarNode>()->name, "x");
  EXPECT_EQ(difference(before, after, close_sums), "");
}

}  // namespace
}  // namespace lathe::graph
