#include <gtest/gtest.h>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words
using Names = std::vector<std::string>;

constexpr double close = 1e-4;

// gamma, beta, mean, variance of so many channels, after `x`.
std::vector<Expr> with_statistics(Expr x, int64_t channels) {
  return {std::move(x), weights({channels}, 31), weights({channels}, 32), weights({channels}, 33),
          weights({channels}, 34, 0.5, 2)};
}

Expr normalized(Graph& g, const Expr& x, int64_t channels, double epsilon = 1e-5, int64_t axis = 1) {
  return g.call(ops::batch_norm, with_statistics(x, channels), ir::make<ops::BatchNormAttributes>(axis, epsilon));
}

ir::IRModule folded(const ir::IRModule& module) { return fold_batch_norm(module, context()).value_or_throw(); }
// What is left when constants are computed and dead code is dropped.
Names left(const ir::IRModule& module) {
  return calls(eliminate_dead_code(fold_constants(module, context()).value_or_throw(), context()).value_or_throw());
}

TEST(fold_batch_norm, makes_of_programs_what_its_text_expects) { expect_text(fold_batch_norm, __FILE__); }

TEST(fold_batch_norm, folds_into_a_convolution) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(2), ir::int64(5), ir::int64(3)});
  const auto before = g.finish(normalized(g, g.call(ops::conv, {x, weights({3, 2, 3, 2}, 1)}), 3));
  const auto after = folded(before);
  EXPECT_EQ(left(after), (Names{"nn.conv", "add"}));
  EXPECT_EQ(difference(before, after, close), "");
}

TEST(fold_batch_norm, honours_the_epsilon) {
  for (const double epsilon : {1e-5, 0.25}) {
    Graph g;
    const Expr x = g.input("x", Extents{1, 2, 4, 4});
    const auto before = g.finish(normalized(g, g.call(ops::conv, {x, weights({3, 2, 1, 1}, 1)}), 3, epsilon));
    EXPECT_EQ(difference(before, folded(before), close), "") << epsilon;
  }
}

TEST(fold_batch_norm, folds_into_a_grouped_convolution_of_one_spatial_dimension) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(6), ir::int64(7)});
  const auto conv = ir::make<ops::ConvAttributes>(Extents{2}, Extents{1, 1}, Extents{}, 3);
  const auto before = g.finish(normalized(g, g.call(ops::conv, {x, weights({9, 2, 3}, 1)}, conv), 9));
  const auto after = folded(before);
  EXPECT_EQ(left(after), (Names{"nn.conv", "add"}));
  EXPECT_EQ(difference(before, after, close), "");
}

// conv, then a constant bias of that shape, then batch normalisation; 3 channels and 3 columns.
ir::IRModule biased(const Extents& bias) {
  Graph g;
  const Expr x = g.input("x", Extents{2, 2, 4, 3});
  const Expr y = g.call(ops::conv, {x, weights({3, 2, 1, 1}, 1)});
  return g.finish(normalized(g, g.call(ops::add, {y, weights(bias, 2)}), 3));
}

TEST(fold_batch_norm, folds_a_bias_per_channel_along) {
  for (const Extents& bias : {Extents{3, 1, 1}, Extents{1, 3, 1, 1}}) {
    const auto before = biased(bias);
    const auto after = folded(before);
    EXPECT_EQ(left(after), (Names{"nn.conv", "add"}));
    EXPECT_EQ(difference(before, after, close), "");
  }
}

TEST(fold_batch_norm, does_not_take_a_bias_per_column_for_one_per_channel) {
  const auto before = biased({3});
  const auto after = folded(before);
  EXPECT_EQ(left(after), (Names{"nn.conv", "add", "multiply", "add"}));
  EXPECT_EQ(difference(before, after, close), "");
}

TEST(fold_batch_norm, keeps_a_convolution_that_others_use) {
  Graph g;
  const Expr x = g.input("x", Extents{1, 2, 5, 3});
  const Expr y = g.call(ops::conv, {x, weights({3, 2, 1, 1}, 1)});
  const auto before = g.finish(g.call(ops::add, {normalized(g, y, 3), y}));
  const auto after = folded(before);
  EXPECT_EQ(left(after), (Names{"nn.conv", "multiply", "add", "add"}));
  EXPECT_EQ(difference(before, after, close), "");
}

TEST(fold_batch_norm, keeps_weights_that_are_not_constant) {
  Graph g;
  const Expr x = g.input("x", Extents{1, 2, 5, 3});
  const Expr w = g.input("w", Extents{3, 2, 1, 1});
  const auto before = g.finish(normalized(g, g.call(ops::conv, {x, w}), 3));
  const auto after = folded(before);
  EXPECT_EQ(left(after), (Names{"nn.conv", "multiply", "add"}));
  EXPECT_EQ(difference(before, after, close), "");
}

TEST(fold_batch_norm, becomes_a_scale_and_a_shift_without_a_convolution) {
  for (const int64_t axis : {0, 1, 2, -1}) {
    const Extents extents{2, 5, 3};
    Graph g;
    const Expr x = g.input("x", extents);
    const int64_t channels = extents[static_cast<size_t>(axis < 0 ? axis + 3 : axis)];
    const auto before = g.finish(normalized(g, x, channels, 1e-3, axis));
    const auto after = folded(before);
    EXPECT_EQ(left(after), (Names{"multiply", "add"})) << axis;
    EXPECT_EQ(difference(before, after, close), "") << axis;
  }
}

TEST(fold_batch_norm, keeps_statistics_that_are_not_constant) {
  Graph g;
  const Expr x = g.input("x", Extents{2, 3, 5});
  const Expr gamma = g.input("gamma", Extents{3});
  std::vector<Expr> args = with_statistics(x, 3);
  args[1] = gamma;
  const auto before = g.finish(g.call(ops::batch_norm, args));
  EXPECT_EQ(calls(folded(before)), Names{"nn.batch_norm_inference"});
}

}  // namespace
}  // namespace lathe::graph
