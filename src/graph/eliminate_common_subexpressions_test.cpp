#include <gtest/gtest.h>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words
using Names = std::vector<std::string>;

ir::IRModule eliminated(const ir::IRModule& module) {
  return eliminate_common_subexpressions(module, context()).value_or_throw();
}

TEST(eliminate_common_subexpressions, makes_of_programs_what_its_text_expects) {
  expect_text(eliminate_common_subexpressions, __FILE__);
}

TEST(eliminate_common_subexpressions, computes_equal_values_once) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(3)});
  const Expr a = g.call(ops::exp, {g.call(ops::add, {x, filled({}, 2)})});
  const Expr b = g.call(ops::exp, {g.call(ops::add, {x, filled({}, 2)})});  // equal constants, other nodes
  const auto before = g.finish(g.call(ops::multiply, {a, b}));
  const auto after = eliminated(before);
  EXPECT_EQ(calls(after), (Names{"add", "exp", "multiply"}));
  EXPECT_EQ(difference(before, after), "");
}

TEST(eliminate_common_subexpressions, keeps_the_same_operator_on_other_values) {
  Graph g;
  const Expr x = g.input("x", Extents{3});
  const Expr y = g.input("y", Extents{3});
  const Expr a = g.call(ops::subtract, {x, y});
  const Expr b = g.call(ops::subtract, {y, x});
  const Expr c = g.call(ops::add, {x, filled({}, 2)});
  const Expr d = g.call(ops::add, {x, filled({}, 3)});
  const auto before = g.finish(std::vector<Expr>{a, b, c, d});
  const auto after = eliminated(before);
  EXPECT_EQ(calls(after), (Names{"subtract", "subtract", "add", "add"}));
  EXPECT_EQ(difference(before, after), "");
}

TEST(eliminate_common_subexpressions, keeps_other_attributes) {
  Graph g;
  const Expr x = g.input("x", Extents{4, 4});
  const auto axis = [](int64_t i) { return ir::make<ops::SoftmaxAttributes>(i); };
  const Expr a = g.call(ops::softmax, {x}, axis(0));
  const Expr b = g.call(ops::softmax, {x}, axis(1));
  const Expr c = g.call(ops::softmax, {x}, axis(0));
  const auto before = g.finish(g.call(ops::subtract, {g.call(ops::add, {a, b}), c}));
  const auto after = eliminated(before);
  EXPECT_EQ(calls(after), (Names{"nn.softmax", "nn.softmax", "add", "subtract"}));
  EXPECT_EQ(difference(before, after), "");
}

TEST(eliminate_common_subexpressions, shares_the_items_of_a_shared_tuple) {
  Graph g;
  const Expr x = g.input("x", Extents{4, 3});
  const auto halves = [&] { return g.call(ops::split, {x}, ir::make<ops::SplitAttributes>(0, Extents{}, 2)); };
  const Expr first = g.emit(relax::make<relax::TupleGetItem>(halves(), 0));
  const Expr again = g.emit(relax::make<relax::TupleGetItem>(halves(), 0));
  const Expr second = g.emit(relax::make<relax::TupleGetItem>(halves(), 1));
  const auto before = g.finish(g.call(ops::add, {g.call(ops::add, {first, again}), second}));
  const auto after = eliminated(before);
  EXPECT_EQ(calls(after), (Names{"split", "item", "item", "add", "add"}));
  EXPECT_EQ(difference(before, after), "");
}

}  // namespace
}  // namespace lathe::graph
