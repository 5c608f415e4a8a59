// What an imported module looks like, and every diagnostic about a model as a whole.
#include "interchange/onnx/model_fixture.h"
#include "ir/visit.h"
#include "relax/call_tir.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary

relax::Function main_of(const ir::IRModule& module) { return module.find_as<relax::FunctionNode>("main"); }

void expect_in(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << "'" << words << "' is not in: " << text;
}

ModelBuilder add_model() {
  ModelBuilder m;
  m.input("x", {2, 3}).weight("w", {3}, {10, 20, 30}).node("Add", {"x", "w"}, {"y"}).output("y");
  return m;
}

TEST(Import, inputs_are_parameters_and_outputs_are_named) {
  ModelBuilder m = add_model();
  m.node("Relu", {"y"}, {"z"}).output("z");
  m.proto.mutable_graph()->mutable_node(0)->set_name("the_add");
  const ir::IRModule module = *m.import();
  const relax::Function f = main_of(module);
  ASSERT_EQ(f->params.size(), 1u);
  EXPECT_EQ(f->params[0]->name, "x");
  const auto* names = f->attrs.get<ir::Value::List>("output_names");
  ASSERT_TRUE(names);
  EXPECT_EQ(*names->at(0).get<std::string>(), "y");
  EXPECT_EQ(*names->at(1).get<std::string>(), "z");
  const auto* body = f->body.as<relax::SeqExpr>();
  ASSERT_EQ(body->blocks.size(), 1u);
  EXPECT_TRUE(body->blocks[0]->is_dataflow);
  const auto* binding = body->blocks[0]->bindings[0].as<relax::VarBinding>();
  const auto* place = std::get_if<support::ModelNode>(binding->value->origin().get());
  ASSERT_TRUE(place);
  EXPECT_EQ(place->file, "model.onnx");
  EXPECT_EQ(place->node, "the_add");
  EXPECT_EQ(place->operator_type, "Add");
  const auto outputs = m.run({floats({2, 3}, {-11, 1, 1, 1, 1, 1})});
  expect_floats(outputs.at(0), {2, 3}, {-1, 21, 31, 11, 21, 31});
  expect_floats(outputs.at(1), {2, 3}, {0, 21, 31, 11, 21, 31});
}

// A product of many weights, too large for one thread to read: names of different lengths put some of them on odd
// bytes.
ModelBuilder much_weight(int64_t count) {
  ModelBuilder m;
  m.input("x", {1});
  std::string last = "x";
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = "w" + std::string(static_cast<size_t>(i), '_');
    std::vector<float> values(65536, 1.0f);
    values[0] = static_cast<float>(i + 2);
    m.weight(name, {65536}, values);
    m.node("Mul", {last, name}, {"y" + std::to_string(i)});
    last = "y" + std::to_string(i);
  }
  m.output(last);
  return m;
}

TEST(Import, large_weights_are_read_whole_and_in_their_places) {
  const TensorData product = much_weight(7).run({floats({1}, {3})}).at(0);
  EXPECT_EQ(ir::float_at(*product, 0), 3.0 * 2 * 3 * 4 * 5 * 6 * 7 * 8);
  for (const int64_t i : {1, 4095, 65535}) EXPECT_EQ(ir::float_at(*product, i), 3.0) << i;
}

TEST(Import, large_weights_that_are_wrong_are_told_in_the_order_of_the_file) {
  ModelBuilder m = much_weight(8);
  for (const int i : {6, 1, 4}) m.proto.mutable_graph()->mutable_initializer(i)->set_dims(0, 65537);
  const std::string text = m.refusal();
  const size_t first = text.find("'w_' has a payload"), second = text.find("'w____' has a payload"),
               third = text.find("'w______' has a payload");
  EXPECT_LT(first, second) << text;
  EXPECT_LT(second, third) << text;
  EXPECT_NE(third, std::string::npos) << text;
}

TEST(Import, nodes_without_a_name_are_told_by_position) {
  ModelBuilder m = add_model();
  m.node("Softmax", {"y"}, {"z"}, {{"axis", 7}}).output("z");
  expect_in(m.refusal(), "model.onnx, node '#1' (Softmax): axis 7 is outside a tensor of rank 2");
}

TEST(Import, an_initializer_that_is_an_input_too_is_its_default) {
  ModelBuilder m = add_model();
  m.input("w", {3});
  EXPECT_EQ(main_of(*m.import())->params.size(), 1u);
  expect_floats(m.run({floats({2, 3}, {0, 0, 0, 0, 0, 1})}).at(0), {2, 3}, {10, 20, 30, 10, 20, 31});
}

TEST(Import, dimensions_of_one_name_are_one_variable) {
  ModelBuilder m;
  m.input("a", {"n", 3}).input("b", {"n", ""}).input("c", {"", 3});
  m.node("Relu", {"a"}, {"d"}).output("d");
  const relax::Function f = main_of(*m.import());
  const auto extent = [&](size_t param, size_t d) { return (*relax::as_tensor(f->params[param])->shape)[d]; };
  EXPECT_TRUE(extent(0, 0).same_as(extent(1, 0)));
  EXPECT_TRUE(extent(0, 0).as<ir::VarNode>()->is_size);
  EXPECT_EQ(extent(0, 0).as<ir::VarNode>()->name, "n");
  EXPECT_FALSE(extent(1, 1).same_as(extent(2, 0)));
  EXPECT_TRUE(extent(1, 1).is<ir::VarNode>());
  EXPECT_EQ(ir::as_int(extent(0, 1)), 3);
}

TEST(Import, dimensions_are_fixed_by_name) {
  ModelBuilder m;
  m.input("a", {"n", "k"}).node("Relu", {"a"}, {"d"}).output("d");
  const relax::Function f = main_of(*m.import({.dims = {{"n", 5}}}));
  EXPECT_EQ(ir::as_int((*relax::as_tensor(f->params[0])->shape)[0]), 5);
  const std::string wrong = m.refusal({.dims = {{"m", 5}}});
  expect_in(wrong, "onnx-unknown-dim: model.onnx: no input has a dimension called 'm'");
  expect_in(wrong, "its symbolic dimensions are k, n");
  expect_in(m.refusal({.dims = {{"n", -1}}}), "-1");
}

TEST(Import, nodes_are_sorted) {
  ModelBuilder m;
  m.input("x", {2}).node("Neg", {"b"}, {"y"}).node("Exp", {"a"}, {"b"}).node("Relu", {"x"}, {"a"}).output("y");
  expect_floats(m.run({floats({2}, {-1, 0})}).at(0), {2}, {-1, -1});
}

TEST(Import, an_input_or_weight_may_be_an_output) {
  ModelBuilder m;
  m.input("x", {2}).weight("w", {1}, {7}).output("x").output("w").output("x");
  const auto outputs = m.run({floats({2}, {1, 2})});
  ASSERT_EQ(outputs.size(), 3u);
  expect_floats(outputs[0], {2}, {1, 2});
  expect_floats(outputs[1], {1}, {7});
  expect_floats(outputs[2], {2}, {1, 2});
}

TEST(Import, operators_of_the_long_domain_name_are_known) {
  ModelBuilder m = add_model();
  m.proto.mutable_graph()->mutable_node(0)->set_domain("ai.onnx");
  m.proto.mutable_opset_import(0)->set_domain("ai.onnx");
  EXPECT_TRUE(m.import().ok());
}

// ---- refusals ----

TEST(Import, unknown_operators_are_reported_all_at_once) {
  ModelBuilder m;
  m.input("x", {2}).node("Frobnicate", {"x"}, {"a"}).node("Relu", {"a"}, {"b"});
  m.node("Frobnicate", {"b"}, {"c"}).node("Defenestrate", {"c"}, {"d"}).node("Relu", {"d"}, {"y"}).output("y");
  m.proto.mutable_graph()->mutable_node(4)->set_domain("com.nowhere");
  const std::string text = m.refusal();
  expect_in(text,
            "onnx-unknown-operator: model.onnx, node '#0' (Frobnicate): the operator 'Frobnicate' is not one "
            "that Lathe knows (2 nodes use it)");
  expect_in(text, "'Defenestrate'");
  expect_in(text, "the operator 'Relu' of the domain 'com.nowhere'");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  expect_in(ModelBuilder(17).input("x", {1}).node("", {"x"}, {"y"}).output("y").refusal(), "names no operator");
}

TEST(Import, opsets_are_bounded) {
  const auto opset = [](int64_t version) {
    ModelBuilder m(version);
    return m.input("x", {2}).node("Relu", {"x"}, {"y"}).output("y");
  };
  expect_in(opset(0).refusal(),
            "onnx-unsupported-opset: model.onnx: the model imports opset 0; Lathe reads opsets 1 to 27");
  expect_in(opset(999).refusal(), "imports opset 999");
  expect_in(opset(-1).refusal(), "imports opset -1");
  EXPECT_TRUE(opset(7).import().ok());
  EXPECT_TRUE(opset(27).import().ok());
  ModelBuilder none = opset(17);
  none.proto.clear_opset_import();
  expect_in(none.refusal(), "imports no opset");
  ModelBuilder early(12);
  early.input("x", {2}).node("HardSwish", {"x"}, {"y"}).output("y");
  expect_in(early.refusal(), "the operator 'HardSwish' is there in opsets 14 to 27, but opset 12 is imported");
}

TEST(Import, names_must_be_given_once_and_only_once) {
  ModelBuilder twice = add_model();
  twice.node("Neg", {"x"}, {"y"});
  expect_in(twice.refusal(),
            "onnx-duplicate-name: model.onnx, node '#1' (Neg): gives the value 'y', which the node '#0'");
  ModelBuilder shadow = add_model();
  shadow.node("Neg", {"x"}, {"w"});
  expect_in(shadow.refusal(), "an input or initializer of the graph already");
  ModelBuilder weights = add_model();
  weights.weight("w", {1}, {0});
  expect_in(weights.refusal(), "two initializers of the graph are called 'w'");
  ModelBuilder inputs = add_model();
  inputs.input("x", {1});
  expect_in(inputs.refusal(), "two inputs of the graph are called 'x'");
  ModelBuilder missing;
  missing.input("x", {2}).node("Add", {"x", "w"}, {"y"}).output("y");
  expect_in(missing.refusal(), "onnx-missing-value: model.onnx, node '#0' (Add): reads 'w'");
  ModelBuilder output = add_model();
  output.output("nothing");
  expect_in(output.refusal(), "the output 'nothing' is given by no input");
}

TEST(Import, cycles_are_named) {
  ModelBuilder m;
  m.input("x", {2}).node("Add", {"x", "b"}, {"a"}).node("Relu", {"a"}, {"b"}).node("Neg", {"b"}, {"y"}).output("y");
  const std::string text = m.refusal();
  expect_in(text, "onnx-cycle: model.onnx, node");
  expect_in(text, "'a' of node '#0'");
  expect_in(text, "'b' of node '#1'");
  ModelBuilder own;
  own.input("x", {2}).node("Add", {"x", "y"}, {"y"}).output("y");
  expect_in(own.refusal(), "it reads 'y' of node '#0'");
}

TEST(Import, graphs_need_outputs_and_inputs_need_types) {
  ModelBuilder none = add_model();
  none.proto.mutable_graph()->clear_output();
  expect_in(none.refusal(), "onnx-wrong-graph: model.onnx: the graph has no outputs");
  ModelBuilder empty = add_model();
  empty.proto.clear_graph();
  expect_in(empty.refusal(), "holds no graph");
  ModelBuilder typeless = add_model();
  typeless.proto.mutable_graph()->mutable_input(0)->clear_type();
  expect_in(typeless.refusal(), "the input 'x' has no type");
  ModelBuilder shapeless = add_model();
  shapeless.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  expect_in(shapeless.refusal(), "the input 'x' has no shape");
  ModelBuilder sequence = add_model();
  sequence.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_sequence_type();
  expect_in(sequence.refusal(), "an element of the input 'x' has no type");
  ModelBuilder map = add_model();
  map.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_map_type();
  expect_in(map.refusal(), "the input 'x' is not a tensor, a sequence or an optional of them");
}

TEST(Import, dimensions_of_inputs_are_checked) {
  const auto dims = [](const std::vector<Dim>& values) {
    ModelBuilder m;
    return m.input("x", values).node("Relu", {"x"}, {"y"}).output("y");
  };
  expect_in(dims({-3, 4}).refusal(), "onnx-wrong-shape: model.onnx: the dimension 0 of the input 'x' is -3");
  expect_in(dims({int64_t{1} << 62, int64_t{1} << 62}).refusal(), "no memory holds");
  expect_in(dims({int64_t{1} << 32, int64_t{1} << 32}).refusal(), "no memory holds");
  EXPECT_TRUE(dims({0, 4}).import().ok());
  EXPECT_TRUE(dims({}).import().ok());
}

TEST(Import, nodes_are_checked) {
  const auto relu = [](const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                       const std::vector<Attribute>& attributes) {
    ModelBuilder m;
    return m.input("x", {2, 3}).node("Relu", inputs, outputs, attributes).output("y").refusal();
  };
  expect_in(relu({"x", "x"}, {"y"}, {}),
            "onnx-wrong-node: model.onnx, node '#0' (Relu): Relu takes 1 input, but the node has 2");
  expect_in(relu({}, {"y"}, {}), "but the node has 0");
  expect_in(relu({"x"}, {"y", "z"}, {}), "Relu gives 1 output, but the node has 2");
  expect_in(
      relu({"x"}, {"y"}, {{"colour", 3}}),
      "onnx-wrong-attribute: model.onnx, node '#0' (Relu): this version of the operator has no attribute 'colour'");
  ModelBuilder m;
  m.input("x", {2, 3}).node("Softmax", {"x"}, {"y"}, {{"axis", "one"}}).output("y");
  expect_in(m.refusal(), "the attribute 'axis' is a text, not an integer");
  ModelBuilder twice;
  twice.input("x", {2, 3}).node("Softmax", {"x"}, {"y"}, {{"axis", 1}, {"axis", 0}}).output("y");
  expect_in(twice.refusal(), "'axis' is given twice");
}

TEST(Import, shapes_that_do_not_fit_are_told_with_their_operands) {
  ModelBuilder m;
  m.input("x", {8, 128}).weight("bias_7", {64}, std::vector<float>(64)).node("Relu", {"x"}, {"a"});
  m.node("Add", {"a", "bias_7"}, {"y"}).output("y");
  m.proto.mutable_graph()->mutable_node(1)->set_name("Add_12");
  const std::string text = m.refusal();
  expect_in(text, "model.onnx, node 'Add_12' (Add): cannot broadcast [8, 128] with [64]");
  expect_in(text, "note: 'a', the output of '#0', is float32[8, 128]");
  expect_in(text, "note: 'bias_7', the initializer, is float32[64]");
}

TEST(Import, what_depends_on_a_refused_node_is_not_reported) {
  ModelBuilder m;
  m.input("x", {2, 3}).node("Softmax", {"x"}, {"a"}, {{"axis", 9}}).node("Relu", {"a"}, {"b"});
  m.node("Transpose", {"x"}, {"c"}, {{"perm", std::vector<int64_t>{0, 0}}}).node("Add", {"b", "c"}, {"y"}).output("y");
  const std::string text = m.refusal();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;  // each with a note of its operand
  expect_in(text, "axis 9");
  expect_in(text, "'perm' [0, 0]");
}

TEST(Import, results_larger_than_memory_are_refused) {
  ModelBuilder m;
  m.input("x", {1}).integers("shape", {2}, {int64_t{1} << 40, int64_t{1} << 20}).node("Expand", {"x", "shape"}, {"y"});
  expect_in(m.output("y").refusal(), "onnx-wrong-shape: model.onnx, node '#0' (Expand): the result would be");
}

// The sum of vectors of unknown lengths, each of which may be 1: what its extent is computed from doubles with each.
TEST(Import, long_extents_become_symbols) {
  ModelBuilder m;
  m.input("x0", {"", 2});
  std::string sum = "x0";
  std::vector<TensorData> inputs{floats({3, 2}, {0, 1, 2, 3, 4, 5})};
  for (int i = 1; i < 24; ++i) {
    const std::string name = "x" + std::to_string(i), next = "s" + std::to_string(i);
    m.input(name, {"", 2}).node("Add", {sum, name}, {next});
    inputs.push_back(i % 2 ? floats({1, 2}, {1, 2}) : floats({3, 2}, {1, 0, 1, 0, 1, 0}));
    sum = next;
  }
  m.output(sum);
  const ir::IRModule module = m.import().value_or_throw();
  int casts = 0;
  ir::post_order(module.find_as<relax::FunctionNode>("main"),
                 [&](const ir::NodeRef& node) { casts += node.is<relax::MatchCast>() ? 1 : 0; });
  EXPECT_GE(casts, 2);
  expect_close(m.run(inputs).at(0), floats({3, 2}, {23, 25, 25, 27, 27, 29}));
}

// ---- names ----

TEST(Import, names_from_files_are_printed_safely) {
  ModelBuilder m;
  m.input("x", {2}).node("Relu", {"\x1b[31mred\n" + std::string(500, 'x')}, {"y"}).output("y");
  m.proto.mutable_graph()->mutable_node(0)->set_name("caf\xc3\xa9\xff\n");
  const std::string text = m.refusal();
  expect_in(text,
            "'caf\xc3\xa9?"
            "?'");
  expect_in(text, "'?[31mred?xxx");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_LT(text.size(), 400u);
}

}  // namespace
}  // namespace lathe::onnx
