// Model-local functions, and shapes computed inside the graph.
#include "interchange/onnx/model_fixture.h"
#include "relax/infer.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary

const auto& shape_of_output(const ir::IRModule& module) {
  return *relax::as_tensor(module.find_as<relax::FunctionNode>("main")->body.as<relax::SeqExpr>()->body)->shape;
}
size_t bindings_of(const ir::IRModule& module) {
  return module.find_as<relax::FunctionNode>("main")->body.as<relax::SeqExpr>()->blocks.at(0)->bindings.size();
}

schema::FunctionProto& add_function(ModelBuilder& m, const std::string& name, const std::vector<std::string>& inputs,
                                    const std::vector<std::string>& outputs) {
  auto& f = *m.proto.add_functions();
  f.set_domain("local");
  f.set_name(name);
  for (const auto& each : inputs) f.add_input(each);
  for (const auto& each : outputs) f.add_output(each);
  f.add_opset_import()->set_version(17);
  return f;
}
schema::NodeProto& add_node(schema::FunctionProto& f, const std::string& type, const std::vector<std::string>& inputs,
                            const std::string& output) {
  auto& node = *f.add_node();
  node.set_op_type(type);
  for (const auto& each : inputs) node.add_input(each);
  node.add_output(output);
  return node;
}
void call(ModelBuilder& m, const std::string& type, const std::vector<std::string>& inputs, const std::string& output,
          const std::vector<Attribute>& attributes = {}) {
  m.node(type, inputs, {output}, attributes);
  m.proto.mutable_graph()->mutable_node(m.proto.graph().node_size() - 1)->set_domain("local");
}

TEST(Functions, are_expanded_with_their_attributes) {
  ModelBuilder m;
  auto& f = add_function(m, "Scaled", {"a", "b"}, {"r"});
  f.add_attribute("slope");
  auto& leaky = add_node(f, "LeakyRelu", {"a"}, "t");
  auto& alpha = *leaky.add_attribute();
  alpha.set_name("alpha");
  alpha.set_ref_attr_name("slope");
  alpha.set_type(schema::AttributeProto::FLOAT);
  add_node(f, "Add", {"t", "b"}, "r");
  m.input("x", {2}).weight("w", {1}, {100});
  call(m, "Scaled", {"x", "w"}, "u", {{"slope", 0.5f}});
  call(m, "Scaled", {"u", "w"}, "v");
  m.output("u").output("v");
  const auto outputs = m.run({floats({2}, {-4, 6})});
  expect_floats(outputs.at(0), {2}, {98, 106});
  expect_floats(outputs.at(1), {2}, {198, 206});
}

TEST(Functions, that_call_themselves_are_refused) {
  ModelBuilder m;
  auto& f = add_function(m, "Loopy", {"a"}, {"b"});
  add_node(f, "Loopy", {"a"}, "b").set_domain("local");
  m.input("x", {2});
  call(m, "Loopy", {"x"}, "y");
  const std::string text = m.output("y").refusal();
  EXPECT_NE(text.find("onnx-too-deep"), std::string::npos) << text;
  EXPECT_NE(text.find("'Loopy'"), std::string::npos) << text;
}

// 32 calls inside each other are let through, 33 are not, nor 32 beneath a function whose depth is known already.
TEST(Functions, that_nest_too_deep_are_refused) {
  const auto chain = [](int length, const std::string& called) {
    ModelBuilder m;
    for (int i = 0; i < length; ++i) {
      auto& f = add_function(m, "F" + std::to_string(i), {"a"}, {"b"});
      add_node(f, i == 0 ? "Relu" : "F" + std::to_string(i - 1), {"a"}, "b").set_domain(i == 0 ? "" : "local");
    }
    m.input("x", {2});
    call(m, "F0", {"x"}, "y");
    call(m, called, {"y"}, "z");
    return m.output("z");
  };
  expect_floats(chain(32, "F31").run({floats({2}, {-1, 3})}).at(0), {2}, {0, 3});
  EXPECT_NE(chain(33, "F32").refusal().find("onnx-too-deep"), std::string::npos);

  ModelBuilder m = chain(32, "F31");
  add_node(add_function(m, "Above", {"a"}, {"b"}), "F31", {"a"}, "b").set_domain("local");
  call(m, "Above", {"z"}, "last");
  EXPECT_NE(m.output("last").refusal().find("onnx-too-deep"), std::string::npos);
}

TEST(Functions, that_grow_exponentially_are_refused) {
  ModelBuilder m;
  for (int i = 0; i < 30; ++i) {
    auto& f = add_function(m, "F" + std::to_string(i), {"a"}, {"c"});
    const std::string inner = i == 0 ? "Relu" : "F" + std::to_string(i - 1), domain = i == 0 ? "" : "local";
    add_node(f, inner, {"a"}, "b").set_domain(domain);
    add_node(f, inner, {"b"}, "c").set_domain(domain);
  }
  m.input("x", {2});
  call(m, "F29", {"x"}, "y");
  EXPECT_NE(m.output("y").refusal().find("onnx-too-large"), std::string::npos);
}

TEST(Functions, unknown_operators_inside_are_found) {
  ModelBuilder m;
  auto& f = add_function(m, "Outer", {"a"}, {"b"});
  add_node(f, "Frobnicate", {"a"}, "b");
  m.input("x", {2});
  call(m, "Outer", {"x"}, "y");
  EXPECT_NE(m.output("y").refusal().find("'Frobnicate'"), std::string::npos);
}

// ---- shapes computed in the graph ----

// x [n, 6] reshaped to [n * 2, 3] by way of Shape, Gather, Mul, Unsqueeze and Concat.
TEST(ComputedShapes, stay_symbolic) {
  ModelBuilder m;
  m.input("x", {"n", 6})
      .integers("zero", {}, {0})
      .integers("two", {}, {2})
      .integers("three", {1}, {3})
      .integers("axes", {1}, {0});
  m.node("Shape", {"x"}, {"s"}).node("Gather", {"s", "zero"}, {"n"}).node("Mul", {"n", "two"}, {"n2"});
  m.node("Unsqueeze", {"n2", "axes"}, {"n21"}).node("Concat", {"n21", "three"}, {"to"}, {{"axis", 0}});
  m.node("Reshape", {"x", "to"}, {"y"}).output("y");
  const ir::IRModule module = *m.import();
  EXPECT_EQ(relax::text_of(shape_of_output(module)), "[n * 2, 3]");
  EXPECT_EQ(bindings_of(module), 2u);  // the reshape and the output: the arithmetic needs no tensors
  expect_floats(m.run({floats({1, 6}, {1, 2, 3, 4, 5, 6})}).at(0), {2, 3}, {1, 2, 3, 4, 5, 6});
}

// What exporters write for the height of an image behind a window of stride 4: (n - 1) / 4 + 1, where division is
// towards zero. An image has lines, so this is what the convolution gives, and nothing is left to the run.
TEST(ComputedShapes, are_those_of_windows_over_images) {
  ModelBuilder m;
  m.input("x", {1, 1, "n", "m"}).weight("w", {2, 1, 7, 7}, std::vector<float>(98, 1));
  m.integers("minus", {}, {-1}).integers("four", {}, {4}).integers("one", {}, {1}).integers("first", {1}, {0});
  m.integers("fixed", {2}, {1, 2}).integers("height", {}, {2}).integers("width", {}, {3});
  const std::vector<int64_t> strides{4, 4}, pads{3, 3, 3, 3};
  m.node("Conv", {"x", "w"}, {"c"}, {{"strides", strides}, {"pads", pads}}).node("Shape", {"x"}, {"s"});
  std::vector<std::string> sides;
  for (const std::string side : {"height", "width"}) {
    m.node("Gather", {"s", side}, {"own" + side}).node("Add", {"own" + side, "minus"}, {"less" + side});
    m.node("Div", {"less" + side, "four"}, {"quarter" + side}).node("Add", {"quarter" + side, "one"}, {"of" + side});
  }
  m.node("Mul", {"ofheight", "ofwidth"}, {"both"}).node("Unsqueeze", {"both", "first"}, {"pixels"});
  m.node("Concat", {"fixed", "pixels"}, {"to"}, {{"axis", 0}}).node("Reshape", {"c", "to"}, {"y"}).output("y");
  const ir::IRModule module = *m.import();
  EXPECT_EQ(relax::text_of(shape_of_output(module)), "[1, 2, (m + 3) // 4 * ((n + 3) // 4)]");
  EXPECT_EQ(bindings_of(module), 3u) << "the convolution, the reshape and the output";
  EXPECT_EQ(m.run({random_floats({1, 1, 9, 1}, 3)}).at(0)->shape, (std::vector<int64_t>{1, 2, 3}));
}

// A size that the model computes and a reshape requires to be what the tensor has is that from there on.
TEST(ComputedShapes, are_what_reshapes_need_them_to_be) {
  ModelBuilder m;
  m.input("x", {"n", "k", 3}).integers("two", {}, {2}).integers("three", {1}, {3}).integers("first", {1}, {0});
  m.integers("at", {}, {0}).integers("left", {1}, {-1}).node("Shape", {"x"}, {"s"}).node("Gather", {"s", "at"}, {"n"});
  m.node("Mul", {"n", "two"}, {"n2"}).node("Unsqueeze", {"n2", "first"}, {"pairs"});
  m.node("Concat", {"pairs", "three"}, {"to"}, {{"axis", 0}}).node("Reshape", {"x", "to"}, {"flat"});
  m.node("Concat", {"pairs", "left", "three"}, {"again"}, {{"axis", 0}}).node("Reshape", {"flat", "again"}, {"y"});
  m.output("flat").output("y");
  const auto outputs = m.run({random_floats({5, 2, 3}, 3)});
  EXPECT_EQ(outputs.at(0)->shape, (std::vector<int64_t>{10, 3}));
  EXPECT_EQ(outputs.at(1)->shape, (std::vector<int64_t>{10, 1, 3}));
  EXPECT_NE(failure(m, {random_floats({5, 3, 3}, 3)}).find("the shape [10, 3] holds 30 elements, but 'x' has 45"),
            std::string::npos);
}

// By a size that may be 0: the run looks at that alone.
TEST(ComputedShapes, are_divided_by_sizes) {
  ModelBuilder m;
  m.input("x", {"n", 4}).integers("both", {2}, {0, 1}).integers("at", {}, {0}).integers("six", {1}, {6});
  m.integers("first", {1}, {0}).node("Shape", {"x"}, {"s"}).node("Gather", {"s", "at"}, {"n"});
  m.node("Unsqueeze", {"n", "first"}, {"rows"}).node("Mul", {"rows", "six"}, {"six_rows"});
  m.node("Div", {"six_rows", "rows"}, {"y"}).output("y");
  expect_longs(m.run({random_floats({3, 4}, 1)}).at(0), {1}, {6});
  EXPECT_NE(failure(m, {random_floats({0, 4}, 1)}).find("integers are not divided by 0"), std::string::npos);
}

TEST(ComputedShapes, become_tensors_where_data_needs_them) {
  ModelBuilder m;
  m.input("x", {"n", 3}).node("Shape", {"x"}, {"s"}).node("Cast", {"s"}, {"f"}, {{"to", 1}}).output("s").output("f");
  const auto outputs = m.run({floats({2, 3}, {0, 0, 0, 0, 0, 0})});
  expect_longs(outputs.at(0), {2}, {2, 3});
  expect_floats(outputs.at(1), {2}, {2, 3});
}

TEST(ComputedShapes, choices_about_known_sizes_are_made) {
  // Where(shape == -1, ones, shape): what exporters write for Expand.
  ModelBuilder m;
  m.input("x", {1, 3}).integers("shape", {2}, {4, -1}).integers("minus", {1}, {-1}).integers("ones", {2}, {1, 1});
  m.node("Equal", {"shape", "minus"}, {"e"})
      .node("Where", {"e", "ones", "shape"}, {"to"})
      .node("Expand", {"x", "to"}, {"y"});
  m.output("y");
  expect_floats(m.run({floats({1, 3}, {1, 2, 3})}).at(0), {4, 3}, {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3});
}

TEST(ComputedShapes, may_come_from_inputs_when_the_model_runs) {
  ModelBuilder m;
  m.input("x", {2, 6}).input("shape", {3}, Type::INT64).node("Reshape", {"x", "shape"}, {"y"}).output("y");
  const auto x = random_floats({2, 6}, 1);
  EXPECT_EQ(m.run({x, longs({3}, {3, 2, 2})}).at(0)->shape, (std::vector<int64_t>{3, 2, 2}));
  EXPECT_EQ(m.run({x, longs({3}, {0, -1, 3})}).at(0)->shape, (std::vector<int64_t>{2, 2, 3}));
  EXPECT_EQ(m.run({x, longs({3}, {4, 1, -1})}).at(0)->view(), x->view());
}

TEST(ComputedShapes, axes_may_come_from_inputs_when_the_model_runs) {
  ModelBuilder m(18);
  m.input("x", {2, 3, 2}).input("axes", {2}, Type::INT64);
  m.node("ReduceSum", {"x", "axes"}, {"kept"}).node("ReduceMean", {"x", "axes"}, {"gone"}, {{"keepdims", 0}});
  m.node("Unsqueeze", {"x", "axes"}, {"u"}).output("kept").output("gone").output("u");
  const auto x = floats({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  auto outputs = m.run({x, longs({2}, {-1, 0})});
  expect_floats(outputs.at(0), {1, 3, 1}, {18, 26, 34});
  expect_floats(outputs.at(1), {3}, {4.5, 6.5, 8.5});
  EXPECT_EQ(outputs.at(2)->shape, (std::vector<int64_t>{1, 2, 3, 2, 1}));
  outputs = m.run({x, longs({2}, {1, 2})});
  expect_floats(outputs.at(0), {2, 1, 1}, {21, 57});
  EXPECT_EQ(outputs.at(2)->shape, (std::vector<int64_t>{2, 1, 1, 3, 2}));
}

TEST(ComputedShapes, reductions_over_nothing_give_the_identity_at_run_time_too) {
  ModelBuilder m(20);
  m.input("x", {2, 0, 2}).input("axes", {1}, Type::INT64);
  m.node("ReduceProd", {"x", "axes"}, {"a"}).node("ReduceMax", {"x", "axes"}, {"b"}).output("a").output("b");
  const auto outputs = m.run({floats({2, 0, 2}, {}), longs({1}, {1})});
  const float low = -std::numeric_limits<float>::infinity();
  expect_floats(outputs.at(0), {2, 1, 2}, {1, 1, 1, 1});
  expect_floats(outputs.at(1), {2, 1, 2}, {low, low, low, low});
}

TEST(ComputedShapes, slices_may_come_from_inputs_when_the_model_runs) {
  ModelBuilder m;
  m.input("x", {4, 5});
  for (const char* name : {"starts", "ends", "axes", "steps"}) m.input(name, {2}, Type::INT64);
  m.node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"}).output("y");
  std::vector<float> values(20);
  std::iota(values.begin(), values.end(), 0.0f);
  const auto run = [&](std::vector<int64_t> starts, std::vector<int64_t> ends, std::vector<int64_t> axes,
                       std::vector<int64_t> steps) {
    return m.run({floats({4, 5}, values), longs({2}, starts), longs({2}, ends), longs({2}, axes), longs({2}, steps)})
        .at(0);
  };
  expect_floats(run({1, 0}, {3, 1000}, {0, 1}, {1, 2}), {2, 3}, {5, 7, 9, 10, 12, 14});
  expect_floats(run({-1, 3}, {-1000, 1}, {1, 0}, {-2, -1}), {2, 3}, {19, 17, 15, 14, 12, 10});
}

TEST(ComputedShapes, that_cannot_be_known_are_told) {
  ModelBuilder m;
  m.input("x", {2, 6}).input("shape", {"k"}, Type::INT64).node("Reshape", {"x", "shape"}, {"y"}).output("y");
  EXPECT_NE(m.refusal().find("onnx-not-constant: model.onnx, node '#0' (Reshape): the input 1 is int64[k]"),
            std::string::npos)
      << m.refusal();
  ModelBuilder floating;
  floating.input("x", {2, 6}).input("shape", {2}).node("Reshape", {"x", "shape"}, {"y"}).output("y");
  EXPECT_NE(floating.refusal().find("the input 1 ('shape') is float32, but int64 fits"), std::string::npos);
}

}  // namespace
}  // namespace lathe::onnx
