#include <gtest/gtest.h>

#include <random>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words

TEST(merge_axes, makes_of_programs_what_its_text_expects) { expect_text(merge_axes, __FILE__); }

// Random permutations of random extents, many of them 1.
TEST(merge_axes, moves_every_element_to_where_it_was) {
  std::mt19937_64 random(7);
  int merged = 0;
  for (int round = 0; round < 60; ++round) {
    Extents extents(1 + random() % 6), axes(extents.size());
    for (int64_t& extent : extents) extent = std::array<int64_t, 6>{1, 1, 2, 3, 5, 0}[random() % (round % 9 ? 5 : 6)];
    std::iota(axes.begin(), axes.end(), int64_t{0});
    std::shuffle(axes.begin(), axes.end(), random);
    Graph g;
    const Expr x = g.input("x", extents);
    const auto before = g.finish(g.call(ops::permute_dims, {x}, ir::make<ops::PermuteDimsAttributes>(axes)));
    const auto after = merge_axes(before, context()).value_or_throw();
    merged += calls(after).size() != 1 || calls(after)[0] != "permute_dims";
    EXPECT_EQ(difference(before, after), "") << round;
  }
  EXPECT_GE(merged, 30);
}

// Reductions over random ones of random axes.
TEST(merge_axes, reduces_every_element_where_it_was) {
  std::mt19937_64 random(11);
  int merged = 0;
  for (int round = 0; round < 60; ++round) {
    Extents extents(2 + random() % 4), axes;
    for (int64_t& extent : extents) extent = std::array<int64_t, 5>{1, 2, 3, 4, 5}[random() % 5];
    for (size_t d = 0; d < extents.size(); ++d)
      if (random() % 2 == 0) axes.push_back(static_cast<int64_t>(d));
    Graph g;
    const Expr x = g.input("x", extents);
    const auto before = g.finish(g.call(ops::max, {x}, ir::make<ops::ReduceAttributes>(axes, random() % 2 == 0)));
    const auto after = merge_axes(before, context()).value_or_throw();
    merged += calls(after).size() != 1;
    EXPECT_EQ(difference(before, after), "") << round;
  }
  EXPECT_GE(merged, 8);
}

// What a convolution writes with the channels first is left for it to write.
TEST(merge_axes, leaves_what_joins_a_convolution) {
  const auto permuted = [](int64_t width) {
    Graph g;
    const Expr x = g.input("x", Extents{1, 1, 64, width});
    const Expr images = g.call(ops::relu, {g.call(ops::conv, {x, weights({32, 1, 1, 1}, 1)})});
    const Expr last =
        g.call(ops::permute_dims, {images}, ir::make<ops::PermuteDimsAttributes>(std::vector<int64_t>{0, 3, 1, 2}));
    return calls(merge_axes(g.finish(last), context()).value_or_throw()).size();
  };
  EXPECT_EQ(permuted(64), 3u) << "convolution, relu, permutation";
  EXPECT_EQ(permuted(63), 5u) << "the permutation, merged, between two views";
}

}  // namespace
}  // namespace lathe::graph
