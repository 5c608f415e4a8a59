#include "driver/rewrite/rewrite_model.h"

#include <gtest/gtest.h>

#include "driver/rewrite/node_passes.h"
#include "driver/verify/tensors.h"
#include "graph/rewrite_bindings.h"
#include "interchange/onnx/node.h"
#include "interchange/onnx/nodes/node_call.h"
#include "relax/block_builder.h"
#include "relax/interpret/evaluate.h"
#include "relax/verify.h"

namespace lathe::driver {
namespace {

ir::IRModule weights_module(const std::vector<float>& values) {
  relax::BlockBuilder builder;
  const relax::Var x = relax::relax_var("x", relax::tensor_info(std::vector<int64_t>{1}, ir::DType::float32()));
  builder.begin_function("main", {x});
  const auto count = static_cast<int64_t>(values.size());
  builder.end_function(relax::constant(ir::tensor_of<float>(ir::DType::float32(), {count}, values)));
  return builder.finish();
}

std::vector<float> values_of(const ir::IRModule& module) {
  const auto main = module.find_as<relax::FunctionNode>("main");
  const auto& data = *main->body.as<relax::SeqExpr>()->body.as<relax::Constant>()->data;
  std::vector<float> values;
  for (int64_t i = 0; i < data.elements(); ++i) values.push_back(static_cast<float>(ir::float_at(data, i)));
  return values;
}

TEST(round_weights, values_go_to_the_nearest_level) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(values_of(round_weights(weights_module({-1, -0.9f, 0.1f, 0.2f, 1}), 3)),
            (std::vector<float>{-1, -1, 0, 0, 1}));
  EXPECT_EQ(values_of(round_weights(weights_module({0, 0.4f, 1, infinity}), 2)),
            (std::vector<float>{0, 0, 1, infinity}));
  EXPECT_EQ(values_of(round_weights(weights_module({0.3f, 0.7f}), 2)),
            (std::vector<float>{0.3f, 0.7f}));  // few already
  EXPECT_EQ(values_of(round_weights(weights_module({5, 5, 5}), 2)), (std::vector<float>{5, 5, 5}));
}

// A convolution of random weights and its normalisation, as nodes.
ir::IRModule convolution_and_norm() {
  relax::BlockBuilder builder;
  const auto floats = [](std::vector<int64_t> shape, uint64_t seed) {
    return relax::constant(random_tensor(ir::DType::float32(), std::move(shape), seed));
  };
  const auto node = [&](const char* op, std::vector<relax::Expr> args, std::vector<int64_t> shape) {
    auto attributes = onnx::attributes_with<onnx::NodeCallAttributes>([&](onnx::NodeCallAttributes& a) {
      a.op = a.name = op;
      a.opset = 17;
      a.outputs = {std::string(op) + "_out"};
    });
    const relax::StructInfo info = relax::tensor_info(shape, ir::DType::float32());
    return builder.emit(
        relax::make_call(onnx::node_operator, std::move(args), std::move(attributes), {}, {info}).value_or_throw());
  };
  const relax::Var x =
      relax::relax_var("x", relax::tensor_info(std::vector<int64_t>{2, 3, 4, 5}, ir::DType::float32()));
  builder.begin_function("main", {x});
  builder.begin_dataflow();
  const relax::Expr conv = node("Conv", {x, floats({6, 3, 2, 2}, 1), floats({6}, 2)}, {2, 6, 3, 4});
  const relax::Expr variance =
      relax::constant(ir::tensor_of<float>(ir::DType::float32(), {6}, {0.5f, 1, 1.5f, 2, 2.5f, 3}));
  const relax::Expr norm =
      node("BatchNormalization", {conv, floats({6}, 3), floats({6}, 4), floats({6}, 5), variance}, {2, 6, 3, 4});
  const relax::Expr result = builder.emit_output(norm);
  builder.end_block();
  builder.end_function(result);
  return builder.finish();
}

// What a function of nodes computes, by the interpreter.
support::Result<std::vector<ir::TensorData>> interpreted(const ir::IRModule& module, const std::string& function,
                                                         const std::vector<ir::TensorData>& inputs) {
  return relax::evaluate(module, function, inputs);
}

TEST(fold_batch_norm_nodes, weights_and_bias_take_scale_and_shift) {
  const ir::IRModule before = convolution_and_norm();
  ir::PassContext context;
  context.evaluate = node_evaluator(interpreted);
  ir::IRModule after = before;
  for (const std::string& name : default_node_passes())
    for (const ir::PassRow& row : node_pipeline())
      if (row.name == name) after = row.run(std::move(after), context).value_or_throw();
  EXPECT_TRUE(relax::verify(after).empty());
  const auto bindings = graph::all_bindings(after.find_as<relax::FunctionNode>("main"));
  ASSERT_EQ(bindings.size(), 1u);
  EXPECT_TRUE(onnx::is_node(onnx::as_node_call(bindings[0].as<relax::VarBinding>()->value), "Conv"));
  const std::vector<ir::TensorData> inputs{random_tensor(ir::DType::float32(), {2, 3, 4, 5}, 9)};
  const auto expected = context.evaluate(before, "main", inputs).value_or_throw();
  const auto got = context.evaluate(after, "main", inputs).value_or_throw();
  const Difference difference = compare(*got[0], *expected[0]);
  EXPECT_TRUE(difference.agrees()) << difference.largest_error;
  EXPECT_GT(difference.largest_value, 1);
}

TEST(extract_nodes, names_that_are_not_there_are_refused) {
  const auto refused = extract_nodes(weights_module({1, 2}), {}, {"none"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics()[0].code, support::Code{"rewrite-no-value"});
}

TEST(node_pipeline, changes_of_the_signature_are_asked_for) {
  const auto names = default_node_passes();
  EXPECT_EQ(std::count(names.begin(), names.end(), "drop_unused_inputs"), 0);
  EXPECT_EQ(names.size() + 1, node_pipeline().size());
}

}  // namespace
}  // namespace lathe::driver
