#include <gtest/gtest.h>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words
using Names = std::vector<std::string>;

// Squares, as another operator's meaning.
support::Result<Expr> square_of(relax::BlockBuilder& b, const relax::Call& call) {
  return b.call(ops::multiply, {call.args[0], call.args[0]});
}
relax::Operator composite(std::string_view name, relax::Composite meaning) {
  return {.name = name, .inputs = {{"x"}}, .infer = ops::exp.infer, .meaning = std::move(meaning)};
}
const relax::Operator& square() {
  static const relax::Operator op = composite("test.square", square_of);
  return op;
}
const relax::Operator& fourth() {
  static const relax::Operator op = composite("test.fourth", [](relax::BlockBuilder& b, const relax::Call& call) {
    return b.call(square(), {b.call(square(), {call.args[0]}).value_or_throw()});
  });
  return op;
}
const relax::Operator& itself() {
  static const relax::Operator op = composite(
      "test.itself", [](relax::BlockBuilder&, const relax::Call& call) { return support::Result<Expr>(call.args[0]); });
  return op;
}

ir::IRModule expanded(const ir::IRModule& module) { return expand_composites(module, context()).value_or_throw(); }

TEST(expand_composites, makes_of_programs_what_its_text_expects) { expect_text(expand_composites, __FILE__); }

TEST(expand_composites, replaces_a_composite_by_its_meaning) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(3)});
  const auto before = g.finish(g.call(ops::exp, {g.call(square(), {x})}));
  const auto after = expanded(before);
  EXPECT_EQ(calls(after), (Names{"multiply", "exp"}));
  EXPECT_EQ(difference(before, after), "");
}

TEST(expand_composites, expands_composites_of_composites) {
  Graph g;
  const Expr x = g.input("x", {ir::int64(3), ir::size_var("n")});
  const auto before = g.finish(g.call(fourth(), {g.call(fourth(), {x})}));
  const auto after = expanded(before);
  EXPECT_EQ(calls(after), Names(4, "multiply"));
  EXPECT_EQ(difference(before, after), "");
}

TEST(expand_composites, replaces_a_composite_that_is_its_operand) {
  Graph g;
  const Expr x = g.input("x", Extents{3});
  const auto before = g.finish(g.call(ops::negative, {g.call(itself(), {g.call(itself(), {x})})}));
  const auto after = expanded(before);
  EXPECT_EQ(calls(after), Names{"negative"});
  EXPECT_EQ(difference(before, after), "");
}

TEST(expand_composites, keeps_operators_with_meanings_of_their_own) {
  Graph g;
  const Expr x = g.input("x", Extents{3});
  const auto before = g.finish(g.call(ops::softmax, {g.call(ops::exp, {x})}));
  EXPECT_EQ(calls(expanded(before)), (Names{"exp", "nn.softmax"}));
}

TEST(expand_composites, opens_a_result_that_is_the_name_of_a_tuple) {
  Graph g;
  const Expr x = g.input("x", Extents{4, 3});
  const auto before = g.finish(g.call(ops::split, {x}, ir::make<ops::SplitAttributes>(0, std::vector<int64_t>{}, 2)));
  const auto after = expanded(before);
  EXPECT_EQ(calls(after), (Names{"split", "item", "item"}));
  EXPECT_EQ(difference(before, after), "");
}

}  // namespace
}  // namespace lathe::graph
