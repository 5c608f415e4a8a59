#include "interchange/onnx/nodes/write_model.h"

#include "interchange/onnx/model_fixture.h"
#include "interchange/onnx/nodes/import_nodes.h"
#include "interchange/onnx/nodes/node_call.h"
#include "ir/visit.h"
#include "ops/operators.h"
#include "relax/block_builder.h"
#include "relax/verify.h"

namespace lathe::onnx {
namespace {

using testing::ModelBuilder;

ModelBytes bytes_of(std::string content) {
  return {std::make_shared<const std::string>(std::move(content)), "model.onnx", ""};
}
ir::IRModule nodes_of(const ModelBuilder& model) { return import_nodes(bytes_of(model.bytes())).value_or_throw(); }

schema::ModelProto proto_of(const std::string& content) {
  schema::ModelProto proto;
  EXPECT_TRUE(proto.ParseFromString(content));
  return proto;
}

std::vector<std::string> types_of(const schema::ModelProto& proto) {
  std::vector<std::string> types;
  for (const auto& node : proto.graph().node()) types.push_back(node.op_type());
  return types;
}

// What the model gives before and after it was taken apart and written.
void expect_same(const ModelBuilder& model, const std::vector<ir::TensorData>& inputs) {
  const ir::IRModule nodes = nodes_of(model);
  EXPECT_TRUE(relax::verify(nodes).empty());
  const WrittenModel written = write_onnx(nodes).value_or_throw();
  const auto expected = model.run(inputs);
  const auto got =
      relax::evaluate(import_onnx(bytes_of(written.model)).value_or_throw(), "main", inputs).value_or_throw();
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) testing::expect_close(got[i], expected[i], 0);
}

TEST(write_model, a_model_comes_back) {
  ModelBuilder model;
  model.input("x", {"n", 4}).weight("w", {4, 3}, {1, -2, 3, 4, 5, -6, 7, 8, 9, 1, 2, 3}).output("y").output("s");
  model.node("MatMul", {"x", "w"}, {"m"}).node("Split", {"m"}, {"a", ""}, {{"axis", 1}, {"num_outputs", 2}});
  model.proto.mutable_opset_import(0)->set_version(18);
  model.node("Relu", {"a"}, {"y"}).node("Softmax", {"m"}, {"s"}, {{"axis", -1}});
  expect_same(model, {testing::random_floats({5, 4}, 3)});
  const schema::ModelProto made = proto_of(write_onnx(nodes_of(model)).value_or_throw().model);
  EXPECT_EQ(types_of(made), (std::vector<std::string>{"MatMul", "Split", "Relu", "Softmax"}));
  EXPECT_EQ(made.graph().node(1).output(1), "");
  EXPECT_EQ(made.graph().initializer(0).name(), "w");
  EXPECT_EQ(made.graph().input(0).type().tensor_type().shape().dim(0).dim_param(), "n");
  EXPECT_EQ(made.opset_import(0).version(), 18);
}

TEST(write_model, what_shapes_decide_is_constant) {
  ModelBuilder model;
  model.input("x", {2, 3}).output("y");
  model.node("Shape", {"x"}, {"s"}).node("Reshape", {"x", "s"}, {"same"}).node("Identity", {"same"}, {"i"});
  model.node("Neg", {"i"}, {"y"});
  EXPECT_EQ(types_of(proto_of(write_onnx(nodes_of(model)).value_or_throw().model)), std::vector<std::string>{"Neg"});
  expect_same(model, {testing::random_floats({2, 3}, 3)});
}

TEST(write_model, shapes_that_the_run_decides_lose_their_extents) {
  ModelBuilder model;
  model.input("x", {"n"}).output("y");
  model.node("NonZero", {"x"}, {"at"}).node("Cast", {"at"}, {"y"}, {{"to", testing::Type::FLOAT}});
  const ir::IRModule nodes = nodes_of(model);
  EXPECT_TRUE(relax::verify(nodes).empty());
  expect_same(model, {testing::floats({4}, {0, 1, 2, 0})});
  const auto made = proto_of(write_onnx(nodes).value_or_throw().model);
  EXPECT_EQ(made.graph().output(0).type().tensor_type().shape().dim_size(), 2);
}

TEST(write_model, large_tensors_go_beside_it) {
  ModelBuilder model;
  model.input("x", {4}).weight("w", {4}, {1, 2, 3, 4}).weight("v", {4}, {5, 6, 7, 8}).output("y");
  model.node("Mul", {"x", "w"}, {"m"}).node("Add", {"m", "v"}, {"y"});
  const WrittenModel written =
      write_onnx(nodes_of(model), {.data_file = "m.data", .least_outside = 16, .renames = {}}).value_or_throw();
  ASSERT_EQ(written.data.size(), 2u);
  EXPECT_EQ(written.data[0].first, 0u);
  EXPECT_EQ(written.data[1].first, 4096u);
  const schema::ModelProto made = proto_of(written.model);
  EXPECT_EQ(made.graph().initializer(1).external_data(0).value(), "m.data");
  EXPECT_EQ(made.graph().initializer(1).external_data(1).value(), "4096");
}

TEST(write_model, operators_of_relax_are_refused) {
  relax::BlockBuilder builder;
  const relax::Var x = relax::relax_var("x", relax::tensor_info(std::vector<int64_t>{3}, ir::DType::float32()));
  builder.begin_function("main", {x});
  builder.end_function(builder.call(ops::relu, {x}).value_or_throw());
  const auto written = write_onnx(builder.finish());
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.diagnostics()[0].code, support::Code{"onnx-not-exported"});
  EXPECT_NE(written.diagnostics()[0].message.find("nn.relu"), std::string::npos);
}

TEST(write_model, bodies_that_are_no_nodes_are_refused) {
  ModelBuilder model;
  model.input("x", {3}).output("y").node("Relu", {"x"}, {"y"});
  for (const char* body : {"0", "zz", "ff"}) {
    ir::IRModule module = nodes_of(model);
    const auto broken = [&](ir::NodeRef n) -> ir::NodeRef {
      const auto* node = n.as<NodeCallAttributes>();
      return node ? ir::NodeRef(ir::with(*node, [&](NodeCallAttributes& copy) { copy.body = body; })) : n;
    };
    module.set("main", ir::rewrite_post_order(module.find("main"), broken));
    EXPECT_FALSE(write_onnx(module).ok()) << body;
  }
}

TEST(import_nodes, a_function_of_another_opset_is_refused) {
  ModelBuilder model;
  model.input("x", {3}).output("y").node("F", {"x"}, {"y"});
  model.proto.mutable_graph()->mutable_node(0)->set_domain("mine");
  auto& import = *model.proto.add_opset_import();
  import.set_domain("mine");
  import.set_version(1);
  auto& function = *model.proto.add_functions();
  function.set_name("F");
  function.set_domain("mine");
  function.add_input("a");
  function.add_output("b");
  auto& node = *function.add_node();
  node.set_op_type("Relu");
  node.add_input("a");
  node.add_output("b");
  auto& own = *function.add_opset_import();
  own.set_version(17);
  expect_same(model, {testing::random_floats({3}, 1)});
  own.set_version(13);
  const auto refused = import_nodes(bytes_of(model.bytes()));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics()[0].code, support::Code{"onnx-unsupported-opset"});
}

}  // namespace
}  // namespace lathe::onnx
