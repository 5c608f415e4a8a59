// Sequences and optionals inside a graph, and as its inputs and outputs.
#include "interchange/onnx/model_fixture.h"
#include "relax/verify.h"

namespace lathe::onnx {
namespace collection_test {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary
using relax::StructInfo;

void hold_graph(ModelBuilder& m, const std::string& name, const ModelBuilder& inner) {
  auto& graph = *m.proto.mutable_graph();
  auto& attribute = *graph.mutable_node(graph.node_size() - 1)->add_attribute();
  attribute.set_name(name);
  attribute.set_type(schema::AttributeProto::GRAPH);
  *attribute.mutable_g() = inner.proto.graph();
}

ModelBuilder& sequence_input(ModelBuilder& m, const std::string& name, bool is_optional = false) {
  auto& input = *m.proto.mutable_graph()->add_input();
  input.set_name(name);
  schema::TypeProto* type = input.mutable_type();
  if (is_optional) type = type->mutable_optional_type()->mutable_elem_type();
  auto& element = *type->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type();
  element.set_elem_type(Type::FLOAT);
  element.mutable_shape()->add_dim()->set_dim_param("n");
  return m;
}

TEST(Collection, sequences_are_built_and_read) {
  ModelBuilder m;
  m.input("x", {"n"}).input("y", {"k"}).integers("last", {}, {-1}).integers("first", {1}, {0});
  m.node("SequenceEmpty", {}, {"none"}).node("SequenceInsert", {"none", "x"}, {"one"});
  m.node("SequenceInsert", {"one", "y", "first"}, {"two"}).node("SequenceAt", {"two", "last"}, {"a"});
  m.node("SequenceErase", {"two", "first"}, {"rest"}).node("SequenceLength", {"rest"}, {"l"});
  m.node("SequenceConstruct", {"y", "x", "a"}, {"three"}).node("SequenceAt", {"three", "first"}, {"b"});
  m.node("ConcatFromSequence", {"three"}, {"c"}, {{"axis", 0}}).output("a").output("l").output("b").output("c");
  const auto results = m.run({floats({2}, {1, 2}), floats({1}, {3})});
  expect_floats(results.at(0), {2}, {1, 2});
  expect_longs(results.at(1), {}, {1});
  expect_floats(results.at(2), {1}, {3});
  expect_floats(results.at(3), {5}, {3, 1, 2, 1, 2});
  EXPECT_TRUE(relax::verify(m.import().value_or_throw()).empty());
}

TEST(Collection, tensors_are_split_and_joined_along_any_axis) {
  ModelBuilder m;
  m.input("x", {2, 3}).integers("sizes", {2}, {1, 2}).integers("at", {}, {1});
  m.node("SplitToSequence", {"x", "sizes"}, {"s"}, {{"axis", -1}}).node("SequenceAt", {"s", "at"}, {"a"});
  m.node("ConcatFromSequence", {"s"}, {"b"}, {{"axis", 1}});
  m.node("SplitToSequence", {"x"}, {"t"}, {{"axis", 1}, {"keepdims", 0}});
  m.node("ConcatFromSequence", {"t"}, {"c"}, {{"axis", -1}, {"new_axis", 1}}).node("SequenceAt", {"t", "at"}, {"d"});
  m.output("a").output("b").output("c").output("d");
  const auto results = m.run({floats({2, 3}, {1, 2, 3, 4, 5, 6})});
  expect_floats(results.at(0), {2, 2}, {2, 3, 5, 6});
  expect_floats(results.at(1), {2, 3}, {1, 2, 3, 4, 5, 6});
  expect_floats(results.at(2), {2, 3}, {1, 2, 3, 4, 5, 6});
  expect_floats(results.at(3), {2}, {2, 5});
}

// Each turn inserts a tensor of another size; the sequence's element type follows from the turns.
TEST(Collection, loops_carry_sequences) {
  ModelBuilder m;
  m.input("x", {2}).input("m", {}, Type::INT64);
  ModelBuilder body(17);
  body.input("i", {}, Type::INT64).input("go", {}, Type::BOOL).input("s", {1});
  body.integers("one", {1}, {1}).integers("zero", {1}, {0}).node("Add", {"i", "one"}, {"end"});
  body.node("Slice", {"x", "zero", "end"}, {"part"}).node("SequenceInsert", {"s", "part"}, {"t"});
  body.output("go").output("t");
  m.node("SequenceEmpty", {}, {"none"}).node("Loop", {"m", "", "none"}, {"s"});
  hold_graph(m, "body", body);
  m.node("ConcatFromSequence", {"s"}, {"y"}, {{"axis", 0}}).output("y");
  expect_floats(m.run({floats({2}, {1, 2}), longs({}, {2})}).at(0), {3}, {1, 1, 2});
}

TEST(Collection, bodies_are_mapped_over_sequences) {
  ModelBuilder m;
  m.input("x", {2}).input("y", {3}).weight("w", {1}, {10});
  ModelBuilder body(17);
  body.input("a", {""}).input("b", {1}).node("Add", {"a", "b"}, {"c"}).node("Shape", {"a"}, {"d"});
  body.output("c").output("d");
  m.node("SequenceConstruct", {"x", "y"}, {"s"}).node("SequenceMap", {"s", "w"}, {"t", "u"});
  hold_graph(m, "body", body);
  m.node("ConcatFromSequence", {"t"}, {"p"}, {{"axis", 0}}).node("ConcatFromSequence", {"u"}, {"q"}, {{"axis", 0}});
  m.output("p").output("q");
  const auto results = m.run({floats({2}, {1, 2}), floats({3}, {3, 4, 5})});
  expect_floats(results.at(0), {5}, {11, 12, 13, 14, 15});
  expect_longs(results.at(1), {2}, {2, 3});
}

TEST(Collection, optionals_are_asked_and_read) {
  ModelBuilder m(18);
  m.input("x", {2}).node("Optional", {"x"}, {"o"}).node("OptionalHasElement", {"o"}, {"a"});
  m.node("OptionalGetElement", {"o"}, {"b"}).node("OptionalHasElement", {}, {"c"});
  m.node("OptionalGetElement", {"x"}, {"d"}).output("a").output("b").output("c").output("d");
  const auto results = m.run({floats({2}, {1, 2})});
  EXPECT_EQ(ir::int_at(*results.at(0), 0), 1);
  expect_floats(results.at(1), {2}, {1, 2});
  EXPECT_EQ(ir::int_at(*results.at(2), 0), 0);
  expect_floats(results.at(3), {2}, {1, 2});
}

TEST(Collection, inputs_are_sequences_and_optionals) {
  ModelBuilder m;
  sequence_input(sequence_input(m, "s"), "o", true).integers("at", {}, {0});
  m.node("SequenceAt", {"s", "at"}, {"a"}).node("OptionalGetElement", {"o"}, {"t"});
  m.node("SequenceAt", {"t", "at"}, {"b"}).output("a").output("b").output("s");
  const auto module = m.import().value_or_throw();
  EXPECT_TRUE(relax::verify(module).empty());
  const auto main = module.find_as<relax::FunctionNode>("main");
  EXPECT_TRUE(main->params[0]->struct_info.is<relax::SequenceStructInfo>());
  EXPECT_TRUE(main->params[1]->struct_info.is<relax::OptionalStructInfo>());
}

TEST(Collection, elements_may_be_of_several_ranks_until_one_is_read) {
  ModelBuilder m;
  m.input("x", {"n"}).input("y", {2, "k"}).integers("first", {}, {0});
  m.node("SequenceConstruct", {"x", "y", "x"}, {"s"}).node("SequenceErase", {"s", "first"}, {"t"});
  m.node("SequenceInsert", {"t", "first_row"}, {"u"}).node("SequenceLength", {"u"}, {"l"}).output("l");
  m.node("ReduceSum", {"y"}, {"first_row"}, {{"keepdims", 0}});
  expect_longs(m.run({floats({1}, {1}), floats({2, 1}, {3, 4})}).at(0), {}, {3});
  EXPECT_TRUE(relax::verify(m.import().value_or_throw()).empty());
  for (const char* type : {"SequenceAt", "ConcatFromSequence"}) {
    ModelBuilder reads = m;
    if (std::string_view(type) == "SequenceAt")
      reads.node(type, {"u", "first"}, {"z"});
    else
      reads.node(type, {"u"}, {"z"}, {{"axis", 0}});
    EXPECT_NE(reads.output("z").refusal().find("tensors of several numbers of dimensions"), std::string::npos);
  }
}

TEST(Collection, a_sequence_without_a_shape_is_handed_on) {
  ModelBuilder m;
  sequence_input(m, "s");
  m.proto.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_sequence_type()
      ->mutable_elem_type()
      ->mutable_tensor_type()
      ->clear_shape();
  m.input("x", {3, "n"}).node("Identity", {"s"}, {"same"}).node("SequenceInsert", {"same", "x"}, {"more"});
  m.output("same").output("more");
  const auto module = m.import().value_or_throw();
  EXPECT_TRUE(relax::verify(module).empty());
  const StructInfo info = module.find_as<relax::FunctionNode>("main")->params[0]->struct_info;
  EXPECT_TRUE(info.as<relax::SequenceStructInfo>()->element.is<relax::ObjectStructInfo>());
}

TEST(Collection, what_is_of_another_kind_is_refused) {
  const auto refused = [](const std::string& type, const std::vector<std::string>& inputs,
                          const std::vector<Attribute>& attributes = {}) {
    ModelBuilder m;
    m.input("x", {2}).input("y", {2, 2}).input("i", {}, Type::INT64);
    m.node("SequenceConstruct", {"x"}, {"s"}).node("SequenceEmpty", {}, {"none"});
    return m.node(type, inputs, {"z"}, attributes).output("z").refusal();
  };
  const auto expect = [](const std::string& text, const std::string& code, const std::string& part) {
    EXPECT_TRUE(text.starts_with(code)) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(refused("Add", {"x", "s"}), "onnx-wrong-node", "the input 1 is a sequence, but Add takes tensors");
  expect(refused("SequenceAt", {"x", "i"}), "onnx-wrong-node", "is float32[2], but a sequence is needed");
  expect(refused("SequenceAt", {"s", "x"}), "onnx-wrong-node", "is float32");
  expect(refused("SequenceAt", {"none", "i"}), "onnx-unsupported", "an element is read where there can be none");
  expect(refused("SequenceInsert", {"s", "i"}), "onnx-wrong-node", "elements of one sequence are");
  expect(refused("SequenceInsert", {"s", "s"}), "onnx-wrong-node", "but a tensor is needed");
  expect(refused("SequenceConstruct", {"x", "i"}), "onnx-wrong-node", "is int64");
  expect(refused("ConcatFromSequence", {"s"}, {{"axis", 3}}), "onnx-wrong-attribute", "axis 3 is outside");
  expect(refused("ConcatFromSequence", {"none"}, {{"axis", 0}}), "onnx-unsupported", "that can have no elements");
  expect(refused("SplitToSequence", {"y", "y"}), "onnx-wrong-node", "is float32");
  expect(refused("Optional", {}), "onnx-wrong-attribute", "needs the attribute 'type'");
}

}  // namespace collection_test
}  // namespace lathe::onnx
