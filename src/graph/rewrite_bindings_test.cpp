#include "graph/rewrite_bindings.h"

#include <gtest/gtest.h>

#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words
using Names = std::vector<std::string>;

relax::Function main_of(const ir::IRModule& module) { return module.find_as<relax::FunctionNode>("main"); }

TEST(rewrite_bindings, gives_an_equal_function_when_nothing_is_rewritten) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(3)});
  const auto before = g.finish(g.call(ops::exp, {g.call(ops::add, {x, weights({3}, 1)})}));
  const auto keep = [](Emitter&, const Var&, const Expr&) -> Result<Expr> { return Expr(); };
  EXPECT_TRUE(ir::structural_equal(rewrite_functions(before, keep).value_or_throw(), before));
}

TEST(rewrite_bindings, gives_the_very_function_when_nothing_changes_what_make_function_made) {
  Graph g;
  const Expr x = g.input("x", Extents{3});
  const auto module = g.finish(g.call(ops::exp, {g.call(ops::negative, {x})}));
  const auto keep = [](Emitter&, const Var&, const Expr&) -> Result<Expr> { return Expr(); };
  const auto same = [](Emitter&, const Var&, const Expr& value) -> Result<Expr> { return value; };
  const auto once = rewrite_functions(module, keep).value_or_throw();
  EXPECT_TRUE(ir::same_functions(rewrite_functions(once, keep).value_or_throw(), once));
  EXPECT_TRUE(ir::same_functions(rewrite_functions(once, same).value_or_throw(), once));
  // A plain variable that is no result becomes a dataflow variable, here or in the next pass.
  const relax::Function function = main_of(once);
  std::vector<Binding> bindings = all_bindings(function);
  const auto* first = bindings[0].as<VarBinding>();
  const Var plain = relax_var("plain", first->var->struct_info, false);
  const Expr value = ir::cast<relax::Call>(first->value);
  const Expr next = make_call(ops::exp, {plain}).value_or_throw();
  const Var result = relax_var("result", next->struct_info, false);
  std::vector<BindingBlock> blocks{
      ir::make<BindingBlockNode>(std::vector<Binding>{ir::make<VarBinding>(value, plain)}, false),
      ir::make<BindingBlockNode>(std::vector<Binding>{ir::make<VarBinding>(next, result)}, false)};
  ir::IRModule other;
  other.set("main", ir::with(*function, [&](relax::FunctionNode& copy) {
              copy.body = with_struct_info(ir::make<SeqExpr>(std::move(blocks), Expr(result)), next->struct_info);
            }));
  const auto made = main_of(rewrite_functions(other, keep).value_or_throw());
  ASSERT_EQ(made->body.as<SeqExpr>()->blocks.size(), 1u);
  EXPECT_TRUE(all_bindings(made)[0].as<VarBinding>()->var->is_dataflow);
  EXPECT_FALSE(all_bindings(made)[1].as<VarBinding>()->var->is_dataflow);
}

TEST(rewrite_bindings, replaces_a_variable_everywhere_by_a_leaf) {
  Graph g;
  const Expr x = g.input("x", Extents{3});
  const Expr y = g.call(ops::exp, {x});
  const auto before = g.finish(std::vector<Expr>{g.call(ops::add, {y, y}), y});
  const auto skip_exp = [](Emitter&, const Var&, const Expr& value) -> Result<Expr> {
    const auto* exp = as_call_of(value, "exp");
    return exp ? exp->args[0] : Expr();
  };
  const auto after = rewrite_functions(before, skip_exp).value_or_throw();
  EXPECT_EQ(calls(after), Names{"add"});
  const auto* sum = find_call(after, "add");
  EXPECT_EQ(sum->args[0].get(), main_of(after)->params[0].get());
  EXPECT_EQ(sum->args[1].get(), main_of(after)->params[0].get());
  const auto* results = all_bindings(main_of(after)).back().as<VarBinding>()->value.as<Tuple>();
  ASSERT_TRUE(results);
  EXPECT_EQ(results->items[1].get(), main_of(after)->params[0].get());
}

TEST(rewrite_bindings, emits_operands_before_the_binding) {
  Graph g;
  const Expr x = g.input("x", {ir::int64(2), ir::size_var("n")});
  const auto before = g.finish(g.call(ops::subtract, {x, filled({}, 2)}));
  const auto negate = [](Emitter& emitter, const Var&, const Expr& value) -> Result<Expr> {
    const auto* call = as_call_of(value, "subtract");
    if (!call) return Expr();
    const Expr negative = TRY(emitter.call(ops::negative, {call->args[1]}));
    EXPECT_TRUE(as_call_of(emitter.value_of(negative), "negative"));
    return make_call(ops::add, {call->args[0], negative});
  };
  const auto after = rewrite_functions(before, negate).value_or_throw();
  EXPECT_EQ(calls(after), (Names{"negative", "add"}));
  EXPECT_EQ(difference(before, after), "");
}

TEST(rewrite_bindings, shows_operands_that_are_rewritten_already) {
  Graph g;
  const Expr x = g.input("x", Extents{3});
  const auto before = g.finish(g.call(ops::exp, {g.call(ops::exp, {g.call(ops::exp, {x})})}));
  const auto drop = [](Emitter& emitter, const Var&, const Expr& value) -> Result<Expr> {
    const auto* call = as_call_of(value, "exp");
    support::require(call, "there are only exponentials");
    EXPECT_FALSE(emitter.value_of(call->args[0]));  // the operand is the parameter by now
    return call->args[0];
  };
  EXPECT_EQ(calls(rewrite_functions(before, drop).value_or_throw()), Names{});
}

TEST(rewrite_bindings, passes_failures_on) {
  Graph g;
  const Expr x = g.input("x", Extents{3});
  const auto before = g.finish(g.call(ops::exp, {x}));
  const auto fail = [](Emitter& emitter, const Var&, const Expr& value) -> Result<Expr> {
    return emitter.call(ops::matmul, {value.as<Call>()->args[0], filled({2, 2}, 1)});
  };
  EXPECT_FALSE(rewrite_functions(before, fail).ok());
}

TEST(rewrite_bindings, counts_uses_in_calls_tuples_and_results) {
  Graph g;
  const Expr x = g.input("x", Extents{3});
  const Expr y = g.call(ops::multiply, {x, x});
  const Expr z = g.call(ops::add, {y, x});
  const auto before = g.finish(std::vector<Expr>{y, z, y});
  auto uses = count_uses(main_of(before));
  EXPECT_EQ(uses[x.get()], 3);
  EXPECT_EQ(uses[y.get()], 3);
  EXPECT_EQ(uses[z.get()], 1);
}

TEST(rewrite_bindings, makes_only_results_visible_outside_the_dataflow_block) {
  Graph g;
  const Expr x = g.input("x", Extents{3});
  const Expr y = g.call(ops::exp, {x});
  const auto before = g.finish(g.call(ops::negative, {y}));
  const auto old = main_of(before);
  // The result becomes the first value, the second an inner one.
  const auto bindings = all_bindings(old);
  const auto made = make_function(old->params, bindings, bindings.front().as<VarBinding>()->var, {});
  const auto remade = all_bindings(made);
  ASSERT_EQ(remade.size(), bindings.size());
  EXPECT_FALSE(remade.front().as<VarBinding>()->var->is_dataflow);
  for (size_t i = 1; i < remade.size(); ++i) EXPECT_TRUE(remade[i].as<VarBinding>()->var->is_dataflow);
  EXPECT_EQ(made->body.as<SeqExpr>()->body.get(), remade.front().as<VarBinding>()->var.get());
}

TEST(rewrite_bindings, tells_calls_of_operators_by_name) {
  Graph g;
  const Expr x = g.input("x", Extents{3});
  const auto module = g.finish(g.call(ops::exp, {x}));
  const Expr value = all_bindings(main_of(module)).front().as<VarBinding>()->value;
  EXPECT_EQ(as_call_of(value, "exp"), value.as<Call>());
  EXPECT_EQ(as_call_of(value, "log"), nullptr);
  EXPECT_EQ(as_call_of(x, "exp"), nullptr);
  EXPECT_EQ(as_call_of(Expr(), "exp"), nullptr);
}

}  // namespace
}  // namespace lathe::graph
