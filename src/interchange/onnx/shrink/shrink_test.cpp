#include "interchange/onnx/shrink/shrink.h"

#include "interchange/onnx/model_fixture.h"
#include "interchange/onnx/shrink/edit.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT

schema::ModelProto parsed(const std::string& bytes) {
  schema::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  return model;
}

bool calls(const schema::ModelProto& model, const std::string& type) {
  return std::any_of(model.graph().node().begin(), model.graph().node().end(),
                     [&](const schema::NodeProto& node) { return node.op_type() == type; });
}

// A chain of twelve nodes with an Erf in its middle, two outputs, a weight and a symbolic dimension.
ModelBuilder chain() {
  ModelBuilder b;
  b.input("x", {"n", 8}).weight("w", {8, 6}, std::vector<float>(48, 0.5f));
  b.node("Relu", {"x"}, {"a0"});
  for (int i = 0; i < 4; ++i)
    b.node(i == 2 ? "Sigmoid" : "Tanh", {"a" + std::to_string(i)}, {"a" + std::to_string(i + 1)});
  b.node("MatMul", {"a4", "w"}, {"m"}).node("Erf", {"m"}, {"e"}).node("Softmax", {"e"}, {"s"}, {{"axis", 1}});
  b.node("Add", {"s", "m"}, {"t"}).node("Abs", {"t"}, {"u"}).node("Neg", {"m"}, {"v"}).node("Exp", {"v"}, {"z"});
  return b.output("u").output("z");
}

TEST(shrink_model, finds_the_one_node_that_matters) {
  int asked = 0;
  const auto has_erf = [&](const std::string& bytes) {
    ++asked;
    return calls(parsed(bytes), "Erf");
  };
  const schema::ModelProto small = parsed(shrink_model(chain().bytes(), has_erf).value_or_throw());
  ASSERT_EQ(small.graph().node_size(), 1);
  EXPECT_EQ(small.graph().node(0).op_type(), "Erf");
  EXPECT_EQ(small.graph().output_size(), 1);
  EXPECT_EQ(small.graph().initializer_size(), 0);
  ASSERT_EQ(small.graph().input_size(), 1);
  for (const auto& dim : small.graph().input(0).type().tensor_type().shape().dim()) EXPECT_EQ(dim.dim_value(), 1);
  EXPECT_LT(asked, 60);
}

TEST(shrink_model, keeps_two_nodes_that_matter_together) {
  const auto both = [](const std::string& bytes) {
    const schema::ModelProto model = parsed(bytes);
    return calls(model, "MatMul") && calls(model, "Abs");
  };
  const schema::ModelProto small = parsed(shrink_model(chain().bytes(), both).value_or_throw());
  EXPECT_EQ(small.graph().node_size(), 2) << small.graph().node_size();
  for (const auto& tensor : small.graph().initializer())
    for (const int64_t extent : tensor.dims()) EXPECT_EQ(extent, 1);
}

TEST(shrink_model, asks_of_models_that_are_imported_alone) {
  const auto all_import = [](const std::string& bytes) {
    EXPECT_TRUE(import_onnx(ModelBytes{std::make_shared<const std::string>(bytes), "m.onnx", ""}).ok());
    return calls(parsed(bytes), "Softmax");
  };
  shrink_model(chain().bytes(), all_import).value_or_throw();
}

TEST(shrink_model, gives_the_model_back_when_nothing_may_go) {
  const schema::ModelProto whole = parsed(shrink_model(chain().bytes(), [](auto&) { return false; }).value_or_throw());
  EXPECT_EQ(whole.graph().node_size(), 12);
}

TEST(shrink_model, refuses_what_is_no_model) {
  const auto made = shrink_model("no model at all", [](auto&) { return true; });
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.diagnostics()[0].code.name, "onnx-damaged");
}

TEST(shrink_edit, sees_what_subgraphs_take_from_around_them) {
  schema::NodeProto node;
  node.set_op_type("If");
  node.add_input("condition");
  auto* graph = node.add_attribute()->mutable_g();
  auto* inner = graph->add_node();
  inner->add_input("outside");
  inner->add_output("inside");
  graph->add_output()->set_name("inside");
  EXPECT_EQ(shrink::reads_of(node), (std::set<std::string>{"condition", "outside"}));
}

TEST(shrink_edit, crops_weights_and_the_shapes_that_name_the_extent) {
  ModelBuilder b;
  b.input("x", {4, 3}).weight("w", {4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}).integers("s", {2}, {4, 3});
  b.node("Add", {"x", "w"}, {"y"}).node("Reshape", {"y", "s"}, {"z"}).output("z");
  schema::ModelProto model = b.proto;
  for (auto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.float_data_size() > 0)
      tensor.set_raw_data(std::string(reinterpret_cast<const char*>(tensor.float_data().data()), 48));
    if (tensor.int64_data_size() > 0)
      tensor.set_raw_data(std::string(reinterpret_cast<const char*>(tensor.int64_data().data()), 16));
    tensor.clear_float_data();
    tensor.clear_int64_data();
  }
  ASSERT_TRUE(shrink::shrink_extent(model, 3, 2));
  const auto& weight = model.graph().initializer(0);
  EXPECT_EQ(weight.dims(1), 2);
  const float wanted[] = {0, 1, 3, 4, 6, 7, 9, 10};
  EXPECT_EQ(weight.raw_data(), std::string(reinterpret_cast<const char*>(wanted), sizeof wanted));
  EXPECT_TRUE(
      import_onnx(ModelBytes{std::make_shared<const std::string>(model.SerializeAsString()), "m.onnx", ""}).ok());
}

}  // namespace
}  // namespace lathe::onnx
