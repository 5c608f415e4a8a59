#include <gtest/gtest.h>

#include <cmath>

#include "graph/codes.h"
#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/gradient/codes.h"
#include "ops/operators.h"
#include "relax/interpret/evaluate.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words

const ir::DType float64 = ir::DType::float_(64);

support::Result<ir::IRModule> of_all(ir::IRModule module, const ir::PassContext& context) {
  return gradient(std::move(module), {}, context);
}

TEST(gradient, makes_of_programs_what_its_text_expects) { expect_text(of_all, __FILE__); }

ir::TensorData numbers(const Extents& shape, const std::vector<double>& values) {
  return ir::tensor_of(float64, shape, values);
}

// The largest distance between a function's gradients and central differences, element by element.
double farthest(const ir::IRModule& module, std::vector<ir::TensorData> inputs) {
  const ir::IRModule both = gradient(module, {.replaces = true}, context()).value_or_throw();
  const auto results = relax::evaluate(both, "main", inputs).value_or_throw();
  const auto loss = [&](size_t input, int64_t element, double step) {
    std::vector<ir::TensorData> moved = inputs;
    std::vector<double> values;
    for (int64_t i = 0; i < inputs[input]->elements(); ++i)
      values.push_back(ir::float_at(*inputs[input], i) + (i == element ? step : 0));
    moved[input] = numbers(inputs[input]->shape, values);
    return ir::float_at(*relax::evaluate(module, "main", moved).value_or_throw()[0], 0);
  };
  double worst = results.size() == inputs.size() + 1 ? 0 : 1e9;
  for (size_t k = 0; k < inputs.size(); ++k)
    for (int64_t i = 0; i < inputs[k]->elements(); ++i)
      worst = std::max(worst,
                       std::abs(ir::float_at(*results.at(k + 1), i) - (loss(k, i, 1e-5) - loss(k, i, -1e-5)) / 2e-5));
  return worst;
}

TEST(gradient, goes_through_products_and_softmax) {
  Graph g;
  const Expr x = g.input("x", Extents{2, 3}, float64), w = g.input("w", Extents{3, 2}, float64);
  const Expr p = g.call(ops::softmax, {g.call(ops::matmul, {x, w})});
  const Expr q = g.call(ops::divide, {g.call(ops::multiply, {p, p}), g.call(ops::exp, {p})});
  const auto module = g.finish(g.call(ops::sum, {g.call(ops::tanh, {g.call(ops::matmul, {q, p})})}));
  EXPECT_LT(
      farthest(module, {numbers({2, 3}, {1, -0.5, 0.25, 0.75, 2, -1}), numbers({3, 2}, {0.5, 1, -1, 0.3, 2, 1.5})}),
      1e-8);
}

TEST(gradient, adds_up_over_broadcast_axes) {
  Graph g;
  const Expr x = g.input("x", Extents{2, 3}, float64), b = g.input("b", Extents{3}, float64);
  const Expr s = g.input("s", Extents{}, float64);
  const Expr y = g.call(ops::divide, {g.call(ops::multiply, {x, b}), g.call(ops::add, {s, g.call(ops::exp, {b})})});
  const auto module = g.finish(g.call(ops::sum, {g.call(ops::multiply, {y, y})}));
  EXPECT_LT(
      farthest(module, {numbers({2, 3}, {1, -0.5, 0.25, 0.75, 2, -1}), numbers({3}, {0.5, 1, -1}), numbers({}, {3})}),
      1e-8);
}

// The items of a tuple, one of which nobody uses.
TEST(gradient, goes_through_items_of_tuples) {
  Graph g;
  const Expr x = g.input("x", Extents{6}, float64);
  const Expr parts = g.call(ops::split, {x}, ir::make<ops::SplitAttributes>(0, Extents{1, 2, 3}, 0));
  const auto item = [&](int64_t i) { return g.emit(ir::make<relax::TupleGetItem>(parts, i)); };
  const Expr joined = g.call(ops::multiply, {item(0), item(2)});
  const auto module = g.finish(g.call(ops::sum, {joined}));
  EXPECT_LT(farthest(module, {numbers({6}, {1, 2, 3, 4, 5, 6})}), 1e-8);
}

TEST(gradient, of_what_has_no_influence_is_zero) {
  Graph g;
  const Expr x = g.input("x", Extents{2}, float64), y = g.input("y", Extents{2}, float64);
  const auto module = g.finish(g.call(ops::sum, {g.call(ops::multiply, {x, g.call(ops::floor, {y})})}));
  EXPECT_LT(farthest(module, {numbers({2}, {1.5, 2}), numbers({2}, {0.3, 1.7})}), 1e-9);
}

TEST(gradient, refuses_wrong_requests) {
  Graph g;
  const Expr x = g.input("x", Extents{2}), k = g.input("k", Extents{2}, ir::DType::int64());
  const auto module = g.finish({g.call(ops::sum, {x}), g.call(ops::sum, {k})});
  const auto said = [&](const GradientRequest& request) {
    const auto result = gradient(module, request, context());
    if (result.ok()) return std::string("accepted");
    EXPECT_EQ(result.diagnostics()[0].code, codes::gradient_request);
    return result.diagnostics()[0].message;
  };
  EXPECT_EQ(said({.parameters = std::vector<std::string>{"x"}}), "accepted");
  EXPECT_EQ(said({.function = "other"}), "there is no function 'other'");
  EXPECT_EQ(said({.parameters = std::vector<std::string>{"z"}}), "'main' has no parameter 'z'");
  EXPECT_EQ(said({.parameters = std::vector<std::string>{"k"}}),
            "the parameter 'k' is no tensor of floats, which alone have gradients");
  EXPECT_EQ(said({.target = 2}), "'main' has 2 results, not a result 2");
  EXPECT_EQ(said({.target = 1}), "the result whose gradient is asked for is int64[], not a scalar tensor of floats");
}

// A kernel of the runtime has no loops to go back through.
TEST(gradient, names_the_operator_that_has_none) {
  const relax::Operator opaque{.name = "test.opaque",
                               .inputs = {{"x"}},
                               .infer = ops::exp.infer,
                               .meaning = relax::RuntimeKernel{"test.opaque"}};
  Graph g;
  const Expr x = g.input("x", Extents{2});
  const auto module = g.finish(g.call(ops::sum, {g.call(opaque, {x})}));
  const auto result = gradient(module, {}, context());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics()[0].code, ops::gradient::codes::no_gradient);
  EXPECT_EQ(result.diagnostics()[0].message, "the operator test.opaque has no gradient");
}

}  // namespace
}  // namespace lathe::graph
