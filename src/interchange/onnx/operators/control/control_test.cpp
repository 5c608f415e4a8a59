// If, Loop and Scan, nested and with what they take from around them.
#include "interchange/onnx/model_fixture.h"
#include "relax/verify.h"

namespace lathe::onnx {
namespace control_test {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary

// A graph inside a node, built like a model; declared inputs are its own.
struct Inner : ModelBuilder {
  Inner() : ModelBuilder(17) {}
};

void hold(ModelBuilder& m, const std::string& name, const ModelBuilder& inner) {
  auto& graph = *m.proto.mutable_graph();
  auto& attribute = *graph.mutable_node(graph.node_size() - 1)->add_attribute();
  attribute.set_name(name);
  attribute.set_type(schema::AttributeProto::GRAPH);
  *attribute.mutable_g() = inner.proto.graph();
}

ModelBuilder& if_else(ModelBuilder& m, const std::string& condition, const std::vector<std::string>& outputs,
                      const ModelBuilder& then, const ModelBuilder& otherwise) {
  m.node("If", {condition}, outputs);
  hold(m, "then_branch", then);
  hold(m, "else_branch", otherwise);
  return m;
}

TensorData truth(bool value) { return bools({}, {value}); }

// Both branches take x from around; one is longer than the other, so the result's length is known to the run only.
TEST(Control, if_chooses_a_branch_of_what_is_around) {
  ModelBuilder m, after;
  m.input("c", {}, Type::BOOL).input("x", {"n", 2}).weight("w", {2}, {10, 20});
  Inner then, otherwise;
  then.node("Add", {"x", "w"}, {"a"}).node("Concat", {"a", "x"}, {"t"}, {{"axis", 0}}).output("t");
  otherwise.node("Sub", {"x", "w"}, {"t"}).output("t");
  if_else(m, "c", {"y"}, then, otherwise).node("Neg", {"y"}, {"z"}).output("z");
  const TensorData x = floats({1, 2}, {1, 2});
  expect_floats(m.run({truth(true), x}).at(0), {2, 2}, {-11, -22, -1, -2});
  expect_floats(m.run({truth(false), x}).at(0), {1, 2}, {9, 18});
  EXPECT_TRUE(relax::verify(m.import().value_or_throw()).empty());
}

TEST(Control, a_known_condition_leaves_one_branch) {
  ModelBuilder m;
  m.input("x", {2, 3}).integers("two", {1}, {2});
  m.node("Shape", {"x"}, {"s"}).node("Size", {"s"}, {"r"}).node("Equal", {"r", "two"}, {"c"});
  Inner then, otherwise;
  then.node("Neg", {"x"}, {"t"}).output("t");
  otherwise.node("ReduceSum", {"x"}, {"t"}).output("t");  // of another rank
  if_else(m, "c", {"y"}, then, otherwise).output("y");
  expect_floats(m.run({floats({2, 3}, {1, 2, 3, 4, 5, 6})}).at(0), {2, 3}, {-1, -2, -3, -4, -5, -6});
  EXPECT_EQ(m.import().value_or_throw().size(), 1u);
}

ModelBuilder& loop(ModelBuilder& m, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                   const ModelBuilder& body) {
  m.node("Loop", inputs, outputs);
  hold(m, "body", body);
  return m;
}
Inner body_inputs(const std::string& carried) {
  Inner body;
  body.input("i", {}, Type::INT64).input("go", {}, Type::BOOL);
  if (!carried.empty()) body.input(carried, {""});
  return body;
}

// The carried value grows by a row of x each turn, and stops before 3 turns are done.
TEST(Control, loop_carries_a_value_whose_shape_changes) {
  ModelBuilder m;
  m.input("m", {}, Type::INT64).input("x", {"n"}).integers("last", {}, {1});
  Inner body = body_inputs("v");
  body.node("Concat", {"v", "x"}, {"grown"}, {{"axis", 0}}).node("Less", {"i", "last"}, {"on"});
  body.node("ReduceSum", {"grown"}, {"sum"}, {{"keepdims", 0}}).output("on").output("grown").output("sum");
  loop(m, {"m", "", "x"}, {"all", "sums"}, body).output("all").output("sums");
  for (const int64_t trips : {3, 1, 0}) {
    const auto results = m.run({longs({}, {trips}), floats({2}, {1, 2})});
    const std::vector<float> all{1, 2, 1, 2, 1, 2}, sums{6, 9};
    const int64_t turns = std::min<int64_t>(trips, 2);
    expect_floats(results.at(0), {2 + 2 * turns}, {all.begin(), all.begin() + 2 + 2 * turns});
    expect_floats(results.at(1), {turns}, {sums.begin(), sums.begin() + turns});
  }
}

TEST(Control, loop_with_known_turns_has_known_rows) {
  ModelBuilder m;
  m.input("x", {2}).integers("m", {1}, {3});
  Inner body = body_inputs("v");
  body.node("Add", {"v", "x"}, {"w"}).node("Identity", {"go"}, {"on"}).output("on").output("w").output("w");
  loop(m, {"m", "", "x"}, {"last", "rows"}, body).node("Reshape", {"rows", "shape"}, {"flat"});
  m.integers("shape", {1}, {6}).output("last").output("flat");
  const auto results = m.run({floats({2}, {1, 10})});
  expect_floats(results.at(0), {2}, {4, 40});
  expect_floats(results.at(1), {6}, {2, 20, 3, 30, 4, 40});
}

// A loop in a branch in a loop; the innermost reads from three graphs around it, and its own name hides an outer one.
TEST(Control, graphs_nest) {
  ModelBuilder m;
  m.input("x", {2}).input("m", {}, Type::INT64).integers("one", {}, {1}).weight("half", {1}, {0.5f});
  Inner innermost = body_inputs("v");
  innermost.node("Mul", {"x", "half"}, {"t"}).node("Add", {"v", "t"}, {"u"}).node("Add", {"u", "scale"}, {"w"});
  innermost.node("Identity", {"go"}, {"on"}).output("on").output("w");
  Inner then, otherwise;
  loop(then, {"m", "", "carried"}, {"r"}, innermost).output("r");
  otherwise.node("Neg", {"carried"}, {"r"}).output("r");
  Inner body;
  body.input("i", {}, Type::INT64).input("go", {}, Type::BOOL).input("carried", {2});
  body.weight("scale", {1}, {100}).node("Equal", {"i", "one"}, {"first"});
  if_else(body, "first", {"t"}, then, otherwise).node("Identity", {"go"}, {"on"}).output("on").output("t");
  loop(m, {"m", "", "x"}, {"y"}, body).output("y");
  // Turn 0 negates; turn 1 adds m times (x / 2 + 100); turn 2 negates.
  expect_floats(m.run({floats({2}, {2, 4}), longs({}, {2})}).at(0), {2}, {200, 200});
  expect_floats(m.run({floats({2}, {2, 4}), longs({}, {3})}).at(0), {2}, {-301, -302});
}

TEST(Control, scan_takes_parts_from_any_axis_in_either_direction) {
  ModelBuilder m;
  m.input("s", {2}).input("x", {2, "n"}).input("z", {"n", 2});
  Inner body;
  body.input("state", {2}).input("a", {2}).input("b", {2});
  body.node("Add", {"state", "a"}, {"t"}).node("Mul", {"t", "b"}, {"u"}).node("Identity", {"t"}, {"r"});
  body.output("t").output("u").output("r");
  m.node("Scan", {"s", "x", "z"}, {"last", "us", "rs"},
         {{"num_scan_inputs", 2},
          {"scan_input_axes", std::vector<int64_t>{-1, 0}},
          {"scan_input_directions", std::vector<int64_t>{0, 1}},
          {"scan_output_axes", std::vector<int64_t>{1, 0}},
          {"scan_output_directions", std::vector<int64_t>{0, 1}}});
  hold(m, "body", body);
  m.output("last").output("us").output("rs");
  const auto results =
      m.run({floats({2}, {0, 1}), floats({2, 3}, {1, 2, 3, 10, 20, 30}), floats({3, 2}, {1, 2, 3, 4, 5, 6})});
  expect_floats(results.at(0), {2}, {6, 61});
  expect_floats(results.at(1), {2, 3}, {5, 9, 6, 66, 124, 122});
  expect_floats(results.at(2), {3, 2}, {6, 61, 3, 31, 1, 11});
}

TEST(Control, what_does_not_fit_is_refused) {
  const auto refused = [](const auto& build) {
    ModelBuilder m;
    m.input("c", {}, Type::BOOL).input("x", {2, 3}).input("m", {}, Type::INT64);
    build(m);
    return m.output("y").refusal();
  };
  const auto expect = [](const std::string& text, const std::string& code, const std::string& part) {
    EXPECT_TRUE(text.starts_with(code)) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  Inner same, flat, unknown, two;
  same.node("Neg", {"x"}, {"t"}).output("t");
  flat.node("ReduceSum", {"x"}, {"t"}, {{"keepdims", 0}}).output("t");
  unknown.node("Neg", {"nobody"}, {"t"}).output("t");
  two.node("Neg", {"x"}, {"t"}).output("t").output("x");
  Inner whole;
  whole.node("Cast", {"x"}, {"t"}, {{"to", Type::INT64}}).output("t");
  const auto branches = [&](const ModelBuilder& a, const ModelBuilder& b) {
    return refused([&](ModelBuilder& m) { if_else(m, "c", {"y"}, a, b); });
  };
  expect(branches(same, flat), "onnx-unsupported", "the same number of dimensions");
  expect(branches(same, whole), "onnx-wrong-node", "int64[2, 3] from else_branch");
  expect(branches(same, unknown), "onnx-missing-value", "'nobody'");
  expect(branches(same, two), "onnx-wrong-node", "else_branch gives 2 outputs, but the node has 1");
  expect(refused([&](ModelBuilder& m) { m.node("If", {"c"}, {"y"}); }), "onnx-wrong-attribute", "is missing");
  expect(refused([&](ModelBuilder& m) { if_else(m, "x", {"y"}, same, same); }), "onnx-wrong-node",
         "float32, but bool fits");

  const auto body = [&](const std::function<void(ModelBuilder&)>& fill) {
    return refused([&](ModelBuilder& m) {
      Inner inner = body_inputs("v");
      fill(inner);
      loop(m, {"m", "", "x"}, {"y"}, inner);
    });
  };
  expect(body([](ModelBuilder& b) { b.output("go"); }), "onnx-wrong-node", "2 or more are needed");
  expect(body([](ModelBuilder& b) { b.output("v").output("v"); }), "onnx-wrong-node", "says whether to go on");
  expect(body([](ModelBuilder& b) { b.node("ReduceSum", {"v"}, {"t"}, {{"keepdims", 0}}).output("go").output("t"); }),
         "onnx-unsupported", "keep the number of dimensions");
  expect(body([](ModelBuilder& b) { b.output("go").output("go"); }), "onnx-wrong-node", "carried from turn to turn");
  expect(refused([&](ModelBuilder& m) { loop(m, {"m", "", "x"}, {"y"}, same); }), "onnx-wrong-node",
         "body has 0 inputs, but the node gives it 3");
  expect(refused([&](ModelBuilder& m) {
           m.node("Scan", {"x"}, {"y"}, {{"num_scan_inputs", 2}});
           hold(m, "body", same);
         }),
         "onnx-wrong-attribute", "num_scan_inputs is 2");
}

TEST(Control, graphs_too_deep_are_refused) {
  const auto nested = [](int depth) {
    ModelBuilder m;
    m.input("c", {}, Type::BOOL).input("x", {2});
    Inner leaf;
    leaf.node("Neg", {"x"}, {"t"}).output("t");
    Inner inside = leaf;
    for (int i = 1; i < depth; ++i) {
      Inner next;
      if_else(next, "c", {"t"}, inside, leaf).output("t");
      inside = next;
    }
    return if_else(m, "c", {"y"}, inside, leaf).output("y");
  };
  expect_floats(nested(20).run({truth(true), floats({2}, {1, 2})}).at(0), {2}, {-1, -2});
  EXPECT_NE(nested(33).refusal().find("onnx-too-deep"), std::string::npos);
}

// Each loop inside is converted again for each attempt of the one around it.
TEST(Control, loops_whose_shapes_change_at_each_depth_end) {
  Inner inside = body_inputs("v");
  inside.node("Concat", {"v", "v"}, {"t"}, {{"axis", 0}}).output("go").output("t");
  for (int i = 0; i < 5; ++i) {
    Inner next = body_inputs("v");
    loop(next, {"m", "", "v"}, {"t"}, inside).output("go").output("t");
    inside = next;
  }
  ModelBuilder m;
  m.input("x", {1}).input("m", {}, Type::INT64);
  loop(m, {"m", "", "x"}, {"y"}, inside).output("y");
  expect_floats(m.run({floats({1}, {3}), longs({}, {1})}).at(0), {2}, {3, 3});
}

}  // namespace control_test
}  // namespace lathe::onnx
