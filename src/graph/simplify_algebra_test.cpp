#include <gtest/gtest.h>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words
using Names = std::vector<std::string>;

ir::IRModule simplified(const ir::IRModule& module) { return simplify_algebra(module, context()).value_or_throw(); }

TEST(simplify_algebra, makes_of_programs_what_its_text_expects) { expect_text(simplify_algebra, __FILE__); }

TEST(simplify_algebra, drops_operations_that_do_nothing) {
  Graph g;
  Expr x = g.input("x", {ir::size_var("n"), ir::int64(5)});
  x = g.call(ops::add, {x, filled({}, -0.0)});
  x = g.call(ops::subtract, {x, filled({5}, 0)});
  x = g.call(ops::multiply, {filled({1, 5}, 1), x});
  x = g.call(ops::divide, {x, filled({}, 1)});
  x = g.call(ops::power, {x, filled({}, 1)});
  x = g.call(ops::astype, {x}, ir::make<ops::AstypeAttributes>(ir::DType::float32()));
  const auto before = g.finish(g.call(ops::exp, {x}));
  const auto after = simplified(before);
  EXPECT_EQ(calls(after), Names{"exp"});
  EXPECT_EQ(difference(before, after), "");
}

TEST(simplify_algebra, multiplies_divides_and_roots_where_the_exponent_is_known) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> bases{0.0, -0.0, 1, -1, 1.5, -2.25, 3e38, -3e38, 1e-38, -1e-38, inf, -inf, nan, 7e12, 0.1};
  const std::vector<std::pair<double, Names>> rows{{2, {"multiply"}},
                                                   {3, {"multiply", "multiply"}},
                                                   {4, {"multiply", "multiply"}},
                                                   {-1, {"divide"}},
                                                   {0.5, {"add", "sqrt", "equal", "where"}},
                                                   {5, {"power"}},
                                                   {-2, {"power"}}};
  for (const auto& [exponent, expected] : rows) {
    Graph g;
    const Expr x = values({static_cast<int64_t>(bases.size())}, bases);
    const auto before = g.finish(g.call(ops::power, {x, filled({}, exponent)}));
    const auto after = simplified(before);
    EXPECT_EQ(calls(after), expected) << exponent;
    EXPECT_EQ(difference(before, after, 3e-7), "") << exponent;
  }
}

TEST(simplify_algebra, keeps_powers_that_products_would_round_once_more_or_widen) {
  const auto f16 = ir::DType::float_(16), i32 = ir::DType::int_(32);
  Graph narrow;
  const Expr x = narrow.input("x", Extents{3}, f16);
  EXPECT_EQ(calls(simplified(narrow.finish(narrow.call(ops::power, {x, values({}, {3}, f16)})))), Names{"power"});
  Graph square;
  const Expr y = square.input("x", Extents{3}, f16);
  const auto before = square.finish(square.call(ops::power, {y, values({}, {2}, f16)}));
  EXPECT_EQ(calls(simplified(before)), Names{"multiply"});
  EXPECT_EQ(difference(before, simplified(before)), "");
  Graph whole;
  const auto cube = whole.finish(whole.call(ops::power, {whole.input("x", Extents{3}, i32), values({}, {3}, i32)}));
  EXPECT_EQ(calls(simplified(cube)), (Names{"multiply", "multiply"}));
  EXPECT_EQ(difference(cube, simplified(cube)), "");
  Graph root;
  const auto wide = root.finish(root.call(ops::power, {root.input("x", Extents{3}), filled({2, 1}, 2)}));
  EXPECT_EQ(calls(simplified(wide)), Names{"power"}) << "it broadcasts";
}

TEST(simplify_algebra, does_not_fold_x_plus_zero_for_floats) {
  Graph g;
  const Expr x = g.input("x", Extents{3});
  const auto before = g.finish(g.call(ops::add, {x, filled({3}, 0.0)}));
  EXPECT_EQ(calls(simplified(before)), Names{"add"});  // -0 + 0 is 0
}

TEST(simplify_algebra, does_not_fold_x_minus_negative_zero_for_floats) {
  Graph g;
  const Expr x = g.input("x", Extents{3});
  EXPECT_EQ(calls(simplified(g.finish(g.call(ops::subtract, {x, filled({3}, -0.0)})))), Names{"subtract"});
}

TEST(simplify_algebra, folds_x_plus_zero_for_integers) {
  const auto i32 = ir::DType::int_(32);
  Graph g;
  const Expr x = g.input("x", Extents{3}, i32);
  const Expr y = g.call(ops::add, {values({3}, {0, 0, 0}, i32), x});
  const auto before = g.finish(g.call(ops::multiply, {y, y}));
  const auto after = simplified(before);
  EXPECT_EQ(calls(after), Names{"multiply"});
  EXPECT_EQ(difference(before, after), "");
}

TEST(simplify_algebra, keeps_multiplications_by_other_numbers) {
  Graph g;
  Expr x = g.input("x", {ir::size_var("n"), ir::int64(3)});
  x = g.call(ops::multiply, {x, filled({}, 2)});
  x = g.call(ops::multiply, {x, values({3}, {1, 1, 1.5})});
  const auto before = g.finish(x);
  const auto after = simplified(before);
  EXPECT_EQ(calls(after), (Names{"multiply", "multiply"}));
  EXPECT_EQ(difference(before, after), "");
}

TEST(simplify_algebra, keeps_an_identity_that_broadcasts) {
  Graph g;
  const Expr x = g.input("x", Extents{1, 5});
  const auto before = g.finish(g.call(ops::multiply, {x, filled({3, 1}, 1)}));
  const auto after = simplified(before);
  EXPECT_EQ(calls(after), Names{"multiply"});
  EXPECT_EQ(difference(before, after), "");
}

TEST(simplify_algebra, keeps_one_minus_x_and_one_divided_by_x) {
  Graph g;
  Expr x = g.input("x", Extents{7});
  x = g.call(ops::subtract, {filled({7}, 0), x});
  x = g.call(ops::divide, {filled({7}, 1), x});
  const auto before = g.finish(g.call(ops::power, {filled({7}, 1), x}));
  const auto after = simplified(before);
  EXPECT_EQ(calls(after), (Names{"subtract", "divide", "power"}));
}

TEST(simplify_algebra, cancels_a_double_negation_and_a_second_relu) {
  Graph g;
  Expr x = g.input("x", {ir::int64(3), ir::size_var("n")});
  x = g.call(ops::negative, {g.call(ops::negative, {x})});
  const auto before = g.finish(g.call(ops::relu, {g.call(ops::relu, {x})}));
  const auto after = simplified(before);
  const Names names = calls(after);
  EXPECT_EQ(std::count(names.begin(), names.end(), "nn.relu"), 1);
  EXPECT_EQ(find_call(after, "nn.relu")->args[0].as<relax::VarNode>()->name, "x");
  EXPECT_EQ(difference(before, after), "");
}

TEST(simplify_algebra, takes_a_permutation_back_through_a_view) {
  using Axes = std::vector<int64_t>;
  const auto size = [](int64_t n) -> ir::Expr { return n < 0 ? ir::Expr(ir::size_var("n")) : ir::int64(n); };
  struct Row {
    std::vector<int64_t> shape;  // -1: n
    Axes first;
    std::vector<int64_t> viewed;
    Axes then;
    bool is_view;
  };
  const Row rows[] = {
      {{2, 4, 5, 3}, {0, 3, 1, 2}, {2, 3, 20}, {0, 2, 1}, true},         // an image's pixels
      {{6, 4, 5, 3}, {0, 3, 1, 2}, {2, 3, 3, 20}, {0, 1, 3, 2}, true},   // its batch in two axes
      {{1, 4, 5, 3}, {0, 3, 1, 2}, {1, 1, 3, 20}, {0, 1, 3, 2}, true},   // axes of extent 1
      {{4, 5, 3}, {2, 0, 1}, {1, 3, 1, 20}, {2, 3, 0, 1}, true},         // which may go anywhere
      {{2, 20, 6}, {0, 2, 1}, {2, 6, 4, 5}, {0, 2, 3, 1}, true},         // pixels of an image
      {{2, 20, 6}, {0, 2, 1}, {2, 2, 3, 20}, {0, 3, 1, 2}, true},        // channels in two axes
      {{2, 20, 6}, {0, 2, 1}, {2, 2, 3, 20}, {0, 3, 2, 1}, false},       // and these exchanged
      {{2, 4, 5, 3}, {0, 3, 1, 2}, {2, 3, 20}, {0, 1, 2}, false},        // they stay first
      {{2, 4, 5, 3}, {0, 3, 1, 2}, {2, 5, 12}, {0, 2, 1}, false},        // channels and pixels mixed
      {{2, 4, 6, 3}, {0, 3, 1, 2}, {2, 3, 6, 4}, {0, 2, 3, 1}, true},    // pixels taken otherwise
      {{2, 4, 6, 3}, {0, 3, 1, 2}, {2, 3, 6, 4}, {0, 3, 2, 1}, false},   // and exchanged
      {{4, 5, 3}, {2, 1, 0}, {3, 20}, {1, 0}, false},                    // its rows and columns exchanged before
      {{-1, 4, 5, 3}, {0, 3, 1, 2}, {-1, 3, 20}, {0, 2, 1}, true},       // a batch of unknown size
      {{0, 4, 5, 3}, {0, 3, 1, 2}, {0, 3, 20}, {0, 2, 1}, true},         // none of it
      {{0, 4, 5, 3}, {0, 3, 1, 2}, {2, 0, 3, 20}, {0, 1, 3, 2}, false},  // which says nothing of its factors
  };
  for (const Row& row : rows) {
    Graph g;
    std::vector<ir::Expr> shape, viewed;
    for (const int64_t n : row.shape) shape.push_back(size(n));
    for (const int64_t n : row.viewed) viewed.push_back(n < 0 ? shape[0] : size(n));
    const auto permuted = [&](const Expr& x, const Axes& axes) {
      return g.call(ops::permute_dims, {x}, ir::make<ops::PermuteDimsAttributes>(axes));
    };
    Expr x = permuted(g.input("x", shape), row.first);
    x = permuted(g.call(ops::reshape, {x, ir::make<relax::ShapeExpr>(viewed)}), row.then);
    const auto before = g.finish(g.call(ops::exp, {x}));
    const auto after = eliminate_dead_code(simplified(before), context()).value_or_throw();
    const Names names = calls(after);
    EXPECT_EQ(std::count(names.begin(), names.end(), "permute_dims") == 0, row.is_view)
        << ::testing::PrintToString(row.viewed);
    EXPECT_EQ(difference(before, after), "") << ::testing::PrintToString(row.viewed);
  }
}

TEST(simplify_algebra, keeps_a_conversion_to_another_dtype) {
  Graph g;
  const Expr x = g.input("x", Extents{5});
  const auto before = g.finish(g.call(ops::astype, {x}, ir::make<ops::AstypeAttributes>(ir::DType::int_(32))));
  EXPECT_EQ(calls(simplified(before)), Names{"astype"});
}

relax::AttributesRef axes(std::vector<int64_t> order) { return ir::make<ops::PermuteDimsAttributes>(std::move(order)); }

TEST(simplify_algebra, merges_permutations) {
  Graph g;
  Expr x = g.input("x", {ir::int64(2), ir::size_var("n"), ir::int64(5)});
  x = g.call(ops::permute_dims, {x}, axes({1, 2, 0}));
  x = g.call(ops::permute_dims, {x}, axes({0, 2, 1}));
  const auto before = g.finish(g.call(ops::exp, {x}));
  const auto after = simplified(before);
  // The first is dead: what is computed reads the input itself.
  const auto live = eliminate_dead_code(after, context()).value_or_throw();
  EXPECT_EQ(calls(live), (Names{"permute_dims", "exp"}));
  EXPECT_EQ(difference(before, live), "");
}

TEST(simplify_algebra, drops_permutations_that_undo_each_other) {
  Graph g;
  const Expr x = g.input("x", Extents{2, 3, 5});
  Expr y = g.call(ops::permute_dims, {x}, axes({1, 2, 0}));
  y = g.call(ops::permute_dims, {y}, axes({2, 0, 1}));
  const auto before = g.finish(g.call(ops::exp, {y}));
  const auto after = simplified(before);
  EXPECT_EQ(find_call(after, "exp")->args[0].as<relax::VarNode>()->name, "x");
  EXPECT_EQ(difference(before, after), "");
}

TEST(simplify_algebra, keeps_a_permutation_of_equal_extents) {
  Graph g;
  const Expr x = g.input("x", Extents{3, 3});
  const auto before = g.finish(g.call(ops::permute_dims, {x}));
  const auto after = simplified(before);
  EXPECT_EQ(calls(after), Names{"permute_dims"});
  EXPECT_EQ(difference(before, after), "");
}

TEST(simplify_algebra, reads_through_chains_of_views) {
  Graph g;
  const Expr x = g.input("x", Extents{2, 3, 5});
  const Expr flat = g.call(ops::reshape, {x, shape({30})});
  const Expr other = g.call(ops::exp, {g.call(ops::reshape, {flat, shape({5, 6})})});
  const Expr same = g.call(ops::exp, {g.call(ops::reshape, {flat, shape({2, 3, 5})})});
  const auto before = g.finish(std::vector<Expr>{other, same});
  const auto after = simplified(before);
  const auto live = eliminate_dead_code(after, context()).value_or_throw();
  EXPECT_EQ(calls(live), (Names{"reshape", "exp", "exp"}));
  EXPECT_EQ(difference(before, live), "");
}

}  // namespace
}  // namespace lathe::graph
