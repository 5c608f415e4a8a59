#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture's words

// y = a * b + the exponential of a; what else there is of the graph, and a node that differentiates part of it.
ModelBuilder graph_of(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                      const std::vector<Attribute>& attributes) {
  ModelBuilder m;
  auto& training = *m.proto.add_opset_import();
  training.set_domain("ai.onnx.preview.training");
  training.set_version(1);
  m.input("a", {"n"}).input("b", {"n"}).input("k", {2}, Type::INT64);
  m.node("Mul", {"a", "b"}, {"p"}).node("Exp", {"a"}, {"e"}).node("Add", {"p", "e"}, {"y"});
  m.node("Neg", {"b"}, {"other"});
  m.node("Gradient", inputs, outputs, attributes);
  m.proto.mutable_graph()->mutable_node(4)->set_domain("ai.onnx.preview.training");
  for (const std::string& name : outputs) m.output(name);
  return m;
}

const std::vector<std::string> names{"a", "b"};

std::vector<TensorData> inputs() { return {floats({2}, {0, 1}), floats({2}, {3, 5}), longs({2}, {0, 1})}; }

TEST(Gradient, of_a_value_by_two_others) {
  const auto y = graph_of(names, {"da", "db"}, {{"xs", names}, {"y", "y"}}).run(inputs());
  expect_close(y[0], floats({2}, {4, 7.7182818f}));
  expect_close(y[1], floats({2}, {0, 1}));
}

// The graph is taken again at what is given: here b in the place of both, and the other way round.
TEST(Gradient, is_taken_at_the_inputs) {
  const auto same = graph_of({"b", "b"}, {"da", "db"}, {{"xs", names}, {"y", "p"}}).run(inputs());
  expect_close(same[0], floats({2}, {3, 5}));
  expect_close(same[1], floats({2}, {3, 5}));
  const std::vector<std::string> first{"a"}, second{"b"};
  const auto held = graph_of({"b", "a"}, {"da"}, {{"xs", first}, {"zs", second}, {"y", "p"}}).run(inputs());
  expect_close(held[0], floats({2}, {0, 1}));
}

TEST(Gradient, of_a_value_that_does_not_depend_on_it_is_zero) {
  const std::vector<std::string> first{"a"};
  const auto y = graph_of({"a"}, {"da"}, {{"xs", first}, {"y", "other"}}).run(inputs());
  expect_close(y[0], floats({2}, {0, 0}));
}

TEST(Gradient, refuses_what_has_none) {
  const std::vector<std::string> first{"a"}, integers{"k"};
  const auto said = [](const ModelBuilder& m, const char* words) {
    EXPECT_NE(m.refusal().find(words), std::string::npos) << m.refusal();
  };
  said(graph_of({"a"}, {"da"}, {{"xs", first}, {"y", "nothing"}}), "there is no value 'nothing' in the graph");
  said(graph_of({"a", "b"}, {"da"}, {{"xs", first}, {"y", "y"}}), "2 inputs and 1 outputs, but 'xs' and 'zs' name 1");
  said(graph_of({"k"}, {"dk"}, {{"xs", integers}, {"y", "y"}}), "'k' is no tensor of floats");
  said(graph_of({"a"}, {"da"}, {{"xs", first}, {"y", "k"}}), "'k' is no tensor of floats");
}

}  // namespace
}  // namespace lathe::onnx
