#include <gtest/gtest.h>

#include <deque>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/gradient/backward.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words
using Axes = std::optional<std::vector<int64_t>>;

// What a function gives with its gradients, where its last operator is called on inputs of these shapes.
ir::IRModule with_gradients(const relax::Operator& op, const std::vector<std::vector<ir::Expr>>& shapes,
                            const relax::AttributesRef& attributes, const std::optional<Extents>& to) {
  Graph g;
  std::vector<Expr> args;
  for (const auto& extents : shapes) args.push_back(g.input("x" + std::to_string(args.size()), extents));
  if (to) args.push_back(shape(*to));
  const Expr y = g.call(op, args, attributes);
  const auto module = g.finish(g.call(ops::sum, {g.call(ops::sin, {y})}));
  return gradient(module, {.replaces = true}, context()).value_or_throw();
}

// Rules by operators give what the tensor programs give that operators mean, symbolic and empty extents included.
TEST(gradient_rules, rules_agree_with_tensor_programs) {
  static std::deque<relax::Operator> without;
  const ir::Expr n = ir::size_var("n"), one = ir::int64(1), two = ir::int64(2), three = ir::int64(3);
  struct Case {
    const relax::Operator& op;
    std::vector<std::vector<ir::Expr>> shapes;
    relax::AttributesRef attributes = {};
    std::optional<Extents> to = {};
  };
  const std::vector<Case> cases = {
      {ops::add, {{n, three}, {three}}},
      {ops::add, {{two, one}, {n, one, three}}},
      {ops::subtract, {{}, {n, two}}},
      {ops::multiply, {{n, one, two}, {three, two}}},
      {ops::divide, {{three, n}, {one, n}}},
      {ops::negative, {{n, three}}},
      {ops::matmul, {{n, three}, {three, two}}},
      {ops::matmul, {{three}, {three, n}}},
      {ops::matmul, {{n, three}, {three}}},
      {ops::matmul, {{three}, {three}}},
      {ops::matmul, {{two, n, three}, {three, two}}},
      {ops::matmul, {{two, one, three}, {three}}},
      {ops::matmul, {{n, two, three}, {n, three, one}}},
      {ops::matmul, {{two, one, n, three}, {three, three, two}}},
      {ops::reshape, {{n, three, two}}, {}, Extents{2, -1}},
      {ops::expand_dims, {{n, two}}, ir::make<ops::AxesAttributes>(Axes(Extents{0, 2}))},
      {ops::squeeze, {{n, one, two}}, ir::make<ops::AxesAttributes>(Axes(Extents{1}))},
      {ops::permute_dims, {{n, three, two}}, ir::make<ops::PermuteDimsAttributes>(Axes(Extents{2, 0, 1}))},
      {ops::permute_dims, {{n, three}}},
      {ops::sum, {{n, three, two}}, ir::make<ops::ReduceAttributes>(Axes(Extents{-1, 0}), false)},
      {ops::sum, {{n, three}}, ir::make<ops::ReduceAttributes>(Axes(Extents{1}), true)},
      {ops::sum, {{n, three}}},
      {ops::softmax, {{n, three}}},
      {ops::softmax, {{three, n, two}}, ir::make<ops::SoftmaxAttributes>(int64_t{0})},
      {ops::log_softmax, {{n, three}}},
  };
  for (const Case& c : cases) {
    ASSERT_TRUE(c.op.gradient) << c.op.name;
    relax::Operator& plain = without.emplace_back(c.op);
    plain.gradient = {};
    const auto by_rule = with_gradients(c.op, c.shapes, c.attributes, c.to);
    EXPECT_EQ(difference(with_gradients(plain, c.shapes, c.attributes, c.to), by_rule, 1e-4), "") << c.op.name;
    const std::string tensor_program = std::string(c.op.name.substr(c.op.name.rfind('.') + 1)) + "_adjoint";
    for (const auto& [name, function] : by_rule)
      EXPECT_FALSE(c.op.name != "sum" && name.ends_with(tensor_program)) << name << " stands in for a rule";
  }
}

// Extents that only the run compares are left to the tensor program, which adds up whatever it reads.
TEST(gradient_rules, extents_that_may_be_one_are_left_to_the_tensor_program) {
  const auto module = with_gradients(ops::multiply, {{ir::size_var("n")}, {ir::size_var("m")}}, {}, {});
  EXPECT_TRUE(module.find("multiply_adjoint"));
}

TEST(gradient_rules, gradients_are_of_wide_floats) {
  EXPECT_TRUE(ops::gradient::carries_gradient(relax::tensor_info(Extents{2}, ir::DType::bfloat16())));
  EXPECT_FALSE(ops::gradient::carries_gradient(relax::tensor_info(Extents{2}, ir::DType::int64())));
  EXPECT_FALSE(ops::gradient::carries_gradient(relax::StructInfo(ir::make<relax::ShapeStructInfo>())));
}

}  // namespace
}  // namespace lathe::graph
