#include "lower/legalize/at_sizes.h"

#include <gtest/gtest.h>

#include "lower/testing/random_graph.h"

namespace lathe::lower {
namespace {

using namespace relax;  // NOLINT: the subject of these tests

// All operators of a random graph with so many rows as groups of one, in order; reshapes among them.
std::vector<Group> groups_of(const ir::Expr& rows, uint64_t seed) {
  std::mt19937_64 random(seed);
  const ir::IRModule module = testing::random_graph(rows, 12, random).module;
  std::vector<Group> groups;
  for (const BindingBlock& block : module.find_as<FunctionNode>("main")->body.as<SeqExpr>()->blocks)
    for (const Binding& binding : block->bindings) {
      const auto* bound = binding.as<VarBinding>();
      const auto* call = bound ? bound->value.as<Call>() : nullptr;
      if (!call || !callee_operator(*call)) continue;
      Group group{"group", {}, {ir::cast<VarBinding>(binding)}, {bound->var}};
      for (const Expr& arg : call->args)
        if (arg && arg.is<VarNode>() && std::find(group.params.begin(), group.params.end(), arg) == group.params.end())
          group.params.push_back(ir::cast<VarNode>(arg));
      groups.push_back(std::move(group));
    }
  return groups;
}

TEST(at_sizes, gives_the_group_of_a_model_with_these_sizes) {
  const ir::Var n = ir::size_var("n");
  for (uint64_t seed = 0; seed < 8; ++seed)
    for (const int64_t rows : {0, 1, 3, 8}) {
      const std::vector<Group> any = groups_of(n, seed), fixed = groups_of(ir::int64(rows), seed);
      ASSERT_EQ(any.size(), fixed.size());
      for (size_t i = 0; i < any.size(); ++i) {
        const auto at = lower_group(at_sizes(any[i], {{n, ir::int64(rows)}}));
        const auto wanted = lower_group(fixed[i]);
        ASSERT_EQ(at.ok(), wanted.ok());
        if (!at.ok()) continue;  // a constant of several elements belongs into no group
        EXPECT_TRUE(at->scalars.empty());
        EXPECT_EQ(ir::first_difference(at->function, wanted->function), std::nullopt)
            << "seed " << seed << ", " << rows;
      }
    }
}

TEST(at_sizes, leaves_the_group_and_other_symbols_alone) {
  const ir::Var n = ir::size_var("n"), m = ir::size_var("m");
  const Var x = relax_var("x", tensor_info({n, ir::Expr(m) * 2}, DType::float32()));
  const Expr value = make_call(ops::relu, {x}).value_or_throw();
  const Var y = relax_var("y", value->struct_info);
  const Group group{"group", {x}, {make<VarBinding>(value, y)}, {y}};
  const Group at = at_sizes(group, {{n, ir::int64(4)}});
  EXPECT_EQ(text_of(*as_tensor(at.params[0])), "float32[4, m * 2]");
  EXPECT_EQ(text_of(*as_tensor(at.bindings[0]->var)), "float32[4, m * 2]");
  EXPECT_EQ(text_of(*as_tensor(at.bindings[0]->value)), "float32[4, m * 2]");
  EXPECT_EQ(at.bindings[0]->value.as<Call>()->args[0].get(), at.params[0].get());
  EXPECT_EQ(at.results[0].get(), at.bindings[0]->var.get());
  EXPECT_EQ(text_of(*as_tensor(group.params[0])), "float32[n, m * 2]");
  EXPECT_EQ(group.params[0].get(), x.get());
}

}  // namespace
}  // namespace lathe::lower
