#include "graph/constant_weights.h"

#include <gtest/gtest.h>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words

Function main_of(const ir::IRModule& module) { return module.find_as<relax::FunctionNode>("main"); }

const Binding& binding_of(const std::vector<Binding>& bindings, std::string_view op) {
  for (const Binding& binding : bindings)
    if (as_call_of(binding.as<VarBinding>()->value, op)) return binding;
  support::unreachable("no such call");
}

bool is_weight(const ir::IRModule& module, std::string_view op) {
  const std::vector<Binding> bindings = all_bindings(main_of(module));
  return ConstantWeights(main_of(module)).has(binding_of(bindings, op).as<VarBinding>()->var);
}

TEST(constant_weights, are_constants_and_what_is_made_of_them_in_the_same_size) {
  Graph g;
  const Expr x = g.input("x", Extents{6, 4});
  const Expr scaled = g.call(ops::multiply, {weights({2, 3, 4}, 1), weights({2, 1, 1}, 2)});
  const Expr flat = g.call(ops::reshape, {scaled, shape({6, 4})});
  const Expr turned = g.call(ops::permute_dims, {flat});
  const auto module = g.finish(g.call(ops::matmul, {x, turned}));
  for (const char* op : {"multiply", "reshape", "permute_dims"}) EXPECT_TRUE(is_weight(module, op)) << op;
  EXPECT_FALSE(is_weight(module, "matmul"));
  EXPECT_TRUE(ConstantWeights(main_of(module)).has(weights({2}, 1)));
  EXPECT_FALSE(ConstantWeights(main_of(module)).has(x));
  EXPECT_FALSE(ConstantWeights(main_of(module)).has(Expr()));
}

TEST(constant_weights, are_not_what_grows_or_an_input_takes_part_in) {
  Graph g;
  const Expr x = g.input("x", Extents{3, 3});
  const Expr grown = g.call(ops::multiply, {weights({1, 3}, 1), weights({3, 1}, 2)});
  const Expr product = g.call(ops::add, {g.call(ops::exp, {weights({3, 3}, 3)}), g.call(ops::negative, {x})});
  const auto module = g.finish({grown, product});
  for (const char* op : {"multiply", "exp", "negative", "add"}) EXPECT_FALSE(is_weight(module, op)) << op;
  Graph with_input;
  const auto scaled =
      with_input.finish(with_input.call(ops::multiply, {weights({3, 3}, 1), with_input.input("y", Extents{3, 1})}));
  EXPECT_FALSE(is_weight(scaled, "multiply"));
}

// A convolution whose kernel is scaled, of so many groups; `more` of the scaled kernel is a result as well.
ir::IRModule convolution(int64_t groups, bool more = false) {
  Graph g;
  const Expr x = g.input("x", Extents{1, 4, 5, 5});
  const Expr factor = g.call(ops::reshape, {weights({4}, 2), shape({4, 1, 1, 1})});
  const Expr kernel = g.call(ops::multiply, {weights({4, 4 / groups, 3, 3}, 1), factor});
  const Expr y = g.call(ops::conv, {x, kernel},
                        ir::make<ops::ConvAttributes>(Extents{1, 1}, Extents{0, 0, 0, 0}, Extents{1, 1}, groups));
  return more ? g.finish({y, kernel}) : g.finish(y);
}

TEST(scaled_kernels, are_those_of_convolutions_without_groups_and_nothing_else) {
  EXPECT_EQ(scaled_kernels(main_of(convolution(1))).size(), 1u);
  EXPECT_EQ(scaled_kernels(main_of(convolution(2))).size(), 0u);
  EXPECT_EQ(scaled_kernels(main_of(convolution(1, true))).size(), 0u);
}

TEST(fold_all_but_scaled_kernels, leaves_them_to_be_packed_too) {
  const auto left = [](const ir::IRModule& module, const ir::PassContext& asked) {
    return calls(
        eliminate_dead_code(fold_all_but_scaled_kernels(module, asked).value_or_throw(), asked).value_or_throw());
  };
  EXPECT_EQ(left(convolution(1), context()), (std::vector<std::string>{"multiply", "nn.conv"}));
  EXPECT_EQ(left(convolution(2), context()), (std::vector<std::string>{"nn.conv"}));
  ir::PassContext winograd = context();
  winograd.config.set(winograd_wanted, true);
  EXPECT_EQ(left(convolution(1), winograd), (std::vector<std::string>{"nn.conv"}));
}

TEST(fold_all_but_scaled_kernels, changes_no_number_of_what_is_packed) {
  const auto packed = [](const ir::Pass& fold) {
    auto module = fold(convolution(1), context()).value_or_throw();
    for (const ir::Pass& pass : {for_four_lanes(pack_weights), ir::Pass(fold_constants), ir::Pass(eliminate_dead_code)})
      module = pass(std::move(module), context()).value_or_throw();
    return module;
  };
  const auto at_once = packed(fold_all_but_scaled_kernels), in_turn = packed(fold_constants);
  EXPECT_EQ(calls(at_once), (std::vector<std::string>{"nn.conv"}));
  EXPECT_EQ(ir::first_difference(at_once, in_turn).value_or(""), "");
}

}  // namespace
}  // namespace lathe::graph
