#include "lower/legalize/equal_sizes.h"

#include <gtest/gtest.h>

#include "graph/passes.h"
#include "lower/legalize/legalize.h"
#include "lower/legalize/name_extents.h"
#include "lower/legalize/versions.h"
#include "lower/testing/random_graph.h"
#include "lower/testing/same_results.h"
#include "ops/attributes.h"
#include "relax/call_tir.h"
#include "relax/script/dialect.h"
#include "script/testing/expected_text.h"
#include "tir/script/dialect.h"

namespace lathe::lower {
namespace {

using namespace relax;  // NOLINT: the subject of these tests

TEST(equal_sizes, makes_of_programs_what_its_text_expects) {
  const auto graph = relax::script_dialect(ops::default_operators());
  const script::Dialect* const dialects[] = {&tir::script_dialect(), graph.get()};
  const std::string unexpected = script::testing::check_cases(equal_sizes, {}, __FILE__, dialects);
  EXPECT_TRUE(unexpected.empty()) << unexpected;
}

// Tensors [n_i, m_i] through sums, choices, products and softmax, each with each.
ir::IRModule broadcasts(int tensors, int operators, std::mt19937_64& random) {
  const auto pick = [&](size_t count) { return random() % count; };
  std::vector<Var> params;
  for (int i = 0; i < tensors; ++i) {
    const std::string number = std::to_string(i);
    const ir::Expr rows = pick(5) ? ir::Expr(ir::size_var("n" + number)) : ir::int64(3);
    const ir::Expr columns = pick(5) ? ir::Expr(ir::size_var("m" + number)) : ir::int64(3);
    params.push_back(relax_var("x" + number, tensor_info({rows, columns}, ir::DType::float32())));
  }
  BlockBuilder b;
  b.begin_function("main", params);
  const auto call = [&](const Operator& op, std::vector<Expr> args, AttributesRef attributes = {}) {
    return b.emit(make_call(op, std::move(args), std::move(attributes)).value_or_throw());
  };
  std::vector<Expr> values(params.begin(), params.end());
  for (int i = 0; i < operators; ++i) {
    const Expr e = i == 0 ? values[0] : values.back(), other = values[pick(static_cast<size_t>(tensors))];
    switch (pick(4)) {
      case 0:
        values.push_back(call(ops::add, {e, other}));
        break;
      case 1:
        values.push_back(call(ops::where, {call(ops::greater, {e, other}), e, values[0]}));
        break;
      case 2:
        values.push_back(call(ops::softmax, {call(ops::subtract, {e, other})}));
        break;
      default:
        values.push_back(call(ops::relu, {call(ops::multiply, {other, e})}));
    }
  }
  b.end_function(b.emit_output(make_call(ops::relu, {values.back()}).value_or_throw()));
  return b.finish();
}

TEST(equal_sizes, computes_the_same_at_sizes_that_are_one_or_equal) {
  std::mt19937_64 random(7);
  int versions = 0;
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const int tensors = 2 + round % 3;
    const ir::IRModule graph = broadcasts(tensors, 1 + round / 8, random);
    const ir::IRModule lowered = legalize(graph::fuse_ops(graph, {}).value_or_throw(), {}).value_or_throw();
    const ir::IRModule made = equal_sizes(name_extents(lowered, {}).value_or_throw(), {}).value_or_throw();
    versions += static_cast<int>(versions_in(made).size());
    const auto main = graph.find_as<FunctionNode>("main");
    for (int run = 0; run < 6; ++run) {
      std::vector<ir::TensorData> inputs;
      for (const Var& param : main->params) {
        std::vector<int64_t> extents;
        // All equal in the first run, in some of one in the others.
        for (const ir::Expr& extent : *as_tensor(param)->shape)
          extents.push_back(ir::as_int(extent) || run == 0 || random() % 3 ? 3 : 1);
        inputs.push_back(testing::random_data(extents, random));
      }
      testing::expect_same_results(graph, made, inputs);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(versions, 20);
}

}  // namespace
}  // namespace lathe::lower
