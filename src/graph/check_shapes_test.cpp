#include <gtest/gtest.h>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"
#include "relax/assert_op.h"
#include "relax/interpret/evaluate.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words

ir::IRModule checked(const ir::IRModule& module) { return check_shapes(module, context()).value_or_throw(); }

int count_checks(const ir::IRModule& module) {
  int count = 0;
  const auto main = module.find_as<relax::FunctionNode>("main");
  for (const auto& block : main->body.as<relax::SeqExpr>()->blocks)
    for (const auto& binding : block->bindings) {
      const auto* bound = binding.as<relax::VarBinding>();
      count += bound && relax::as_assert(bound->value);
    }
  return count;
}

ir::TensorData ones(const Extents& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return ir::tensor_of<float>(ir::DType::float32(), shape, std::vector<float>(static_cast<size_t>(count), 1.0f));
}

bool accepts(const ir::IRModule& module, const std::vector<Extents>& shapes) {
  std::vector<ir::TensorData> inputs;
  for (const Extents& shape : shapes) inputs.push_back(ones(shape));
  return relax::evaluate(module, "main", inputs).ok();
}

ir::IRModule sum_of(const std::vector<ir::Expr>& a, const std::vector<ir::Expr>& b) {
  Graph g;
  const Expr x = g.input("x", a), y = g.input("y", b);
  return g.finish(g.call(ops::add, {x, y}));
}

TEST(check_shapes, makes_of_programs_what_its_text_expects) { expect_text(check_shapes, __FILE__); }

TEST(check_shapes, adds_nothing_where_the_rule_is_certain) {
  const ir::Expr n = ir::size_var("n");
  EXPECT_EQ(count_checks(checked(sum_of({n, ir::int64(3)}, {n, ir::int64(1)}))), 0);
  EXPECT_EQ(count_checks(checked(sum_of({ir::int64(2)}, {ir::int64(2)}))), 0);
}

TEST(check_shapes, an_extent_against_a_number_is_that_or_one) {
  const ir::IRModule module = checked(sum_of({ir::size_var("n")}, {ir::int64(7)}));
  EXPECT_EQ(count_checks(module), 1);
  EXPECT_TRUE(accepts(module, {{7}, {7}}));
  EXPECT_TRUE(accepts(module, {{1}, {7}}));
  EXPECT_FALSE(accepts(module, {{5}, {7}}));
  EXPECT_FALSE(accepts(module, {{8}, {7}}));
  EXPECT_FALSE(accepts(module, {{0}, {7}}));
}

TEST(check_shapes, two_extents_are_equal_or_one_of_them_is_one) {
  const ir::IRModule module = checked(sum_of({ir::size_var("n")}, {ir::size_var("m")}));
  for (const int64_t n : {0, 1, 3, 4})
    for (const int64_t m : {0, 1, 3, 4})
      EXPECT_EQ(accepts(module, {{n}, {m}}), n == m || n == 1 || m == 1) << n << " " << m;
}

TEST(check_shapes, inner_extents_of_a_product_are_equal) {
  Graph g;
  const Expr x = g.input("x", {ir::int64(2), ir::size_var("k")}), y = g.input("y", {ir::size_var("l"), ir::int64(3)});
  const ir::IRModule module = checked(g.finish(g.call(ops::matmul, {x, y}, ir::make<ops::MatmulAttributes>())));
  EXPECT_TRUE(accepts(module, {{2, 4}, {4, 3}}));
  EXPECT_FALSE(accepts(module, {{2, 4}, {5, 3}}));
  EXPECT_FALSE(accepts(module, {{2, 4}, {1, 3}}));
}

TEST(check_shapes, what_is_checked_once_stays_once_and_is_not_dead) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n")}), y = g.input("y", {ir::size_var("m")});
  const Expr sum = g.call(ops::add, {x, y});
  const Expr product = g.call(ops::multiply, {x, y});
  g.call(ops::exp, {sum});
  const ir::IRModule module = eliminate_dead_code(checked(g.finish(product)), context()).value_or_throw();
  EXPECT_EQ(count_checks(module), 1);
  EXPECT_FALSE(accepts(module, {{3}, {2}}));
}

}  // namespace
}  // namespace lathe::graph
