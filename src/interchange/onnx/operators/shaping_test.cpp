// Operators about shapes and axes: forms by opset, and what they refuse.
#include "interchange/onnx/model_fixture.h"
#include "relax/infer.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary
using Ints = std::vector<int64_t>;

std::vector<float> counting(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

// One node on x = 0, 1, 2, …; the other inputs are integer weights.
ModelBuilder one(int opset, const std::string& type, const std::vector<Dim>& dims, const std::vector<Ints>& integers,
                 const std::vector<Attribute>& attributes = {}, const std::vector<std::string>& outputs = {"y"}) {
  ModelBuilder m(opset);
  m.input("x", dims);
  std::vector<std::string> names{"x"};
  for (const Ints& each : integers) {
    names.push_back("i" + std::to_string(names.size()));
    m.integers(names.back(), {static_cast<int64_t>(each.size())}, each);
  }
  m.node(type, names, outputs, attributes);
  for (const std::string& name : outputs) m.output(name);
  return m;
}
TensorData counted(const Ints& dims) {
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  return floats(dims, counting(count));
}

TEST(Reshape, zero_and_minus_one) {
  const auto shape = [](const Ints& to, int allow_zero = 0) {
    return one(14, "Reshape", {2, 3, 4}, {to}, {{"allowzero", allow_zero}}).run({counted({2, 3, 4})}).at(0)->shape;
  };
  EXPECT_EQ(shape({4, 6}), (Ints{4, 6}));
  EXPECT_EQ(shape({0, -1}), (Ints{2, 12}));
  EXPECT_EQ(shape({-1}), (Ints{24}));
  EXPECT_EQ(shape({0, 0, 2, 2}), (Ints{2, 3, 2, 2}));
  const auto refused = [](const Ints& to) { return one(14, "Reshape", {2, 3, 4}, {to}).refusal(); };
  EXPECT_NE(refused({5, -1}).find("24 elements are not a multiple of 5"), std::string::npos);
  EXPECT_NE(refused({-1, -1}).find("two extents are -1"), std::string::npos);
  EXPECT_NE(refused({-2, 12}).find("-2 at 0 has no meaning"), std::string::npos);
  EXPECT_NE(refused({2, 3, 4, 0}).find("0 at 3 has no meaning"), std::string::npos);
  EXPECT_NE(refused({5, 5}).find("relax-shape-mismatch"), std::string::npos);
  EXPECT_EQ(one(14, "Reshape", {0, 3}, {{0, 7}}, {{"allowzero", 1}}).run({counted({0, 3})}).at(0)->shape, (Ints{0, 7}));
}

TEST(Reshape, of_symbolic_dimensions) {
  const ir::IRModule module = *one(14, "Reshape", {"n", 3, 4}, {{0, -1}}).import();
  const auto body = module.find_as<relax::FunctionNode>("main")->body;
  EXPECT_EQ(
      relax::text_of(*relax::as_tensor(body->struct_info ? body.as<relax::SeqExpr>()->body : relax::Expr())->shape),
      "[n, 12]");
}

TEST(Flatten, at_any_axis) {
  const auto shape = [](int opset, int axis) {
    return one(opset, "Flatten", {2, 3, 4}, {}, {{"axis", axis}}).run({counted({2, 3, 4})}).at(0)->shape;
  };
  EXPECT_EQ(shape(13, 0), (Ints{1, 24}));
  EXPECT_EQ(shape(13, 2), (Ints{6, 4}));
  EXPECT_EQ(shape(13, 3), (Ints{24, 1}));
  EXPECT_EQ(shape(13, -1), (Ints{6, 4}));
  EXPECT_NE(one(9, "Flatten", {2, 3}, {}, {{"axis", -1}}).refusal().find("axis -1 is outside"), std::string::npos);
}

TEST(Squeeze, axes_are_an_attribute_and_then_an_input) {
  const TensorData x = counted({1, 2, 1});
  EXPECT_EQ(one(11, "Squeeze", {1, 2, 1}, {}, {{"axes", Ints{0}}}).run({x}).at(0)->shape, (Ints{2, 1}));
  EXPECT_EQ(one(13, "Squeeze", {1, 2, 1}, {{-1}}).run({x}).at(0)->shape, (Ints{1, 2}));
  EXPECT_EQ(one(13, "Squeeze", {1, 2, 1}, {}).run({x}).at(0)->shape, (Ints{2}));
  EXPECT_EQ(one(11, "Unsqueeze", {2}, {}, {{"axes", Ints{0, 2}}}).run({counted({2})}).at(0)->shape, (Ints{1, 2, 1}));
  EXPECT_EQ(one(13, "Unsqueeze", {2}, {{-1, 0}}).run({counted({2})}).at(0)->shape, (Ints{1, 2, 1}));
  EXPECT_NE(one(13, "Squeeze", {1, 2}, {{1}}).refusal().find("cannot be squeezed: its extent is 2"), std::string::npos);
  EXPECT_NE(one(13, "Squeeze", {1, 2}, {{5}}).refusal().find("axes 5 is outside"), std::string::npos);
  EXPECT_NE(one(13, "Unsqueeze", {2}, {{0, 0}}).refusal().find("twice"), std::string::npos);
  EXPECT_NE(one(11, "Unsqueeze", {2}, {}).refusal().find("'axes' is missing"), std::string::npos);
}

TEST(Transpose, by_permutation_or_reversed) {
  const TensorData x = counted({2, 3});
  expect_floats(one(13, "Transpose", {2, 3}, {}).run({x}).at(0), {3, 2}, {0, 3, 1, 4, 2, 5});
  EXPECT_EQ(one(13, "Transpose", {2, 3, 4}, {}, {{"perm", Ints{1, 2, 0}}}).run({counted({2, 3, 4})}).at(0)->shape,
            (Ints{3, 4, 2}));
  EXPECT_NE(one(13, "Transpose", {2, 3}, {}, {{"perm", Ints{0, 0}}}).refusal().find("'perm' [0, 0] is no permutation"),
            std::string::npos);
  EXPECT_NE(one(13, "Transpose", {2, 3}, {}, {{"perm", Ints{5, -9}}}).refusal().find("[5, -9]"), std::string::npos);
}

TEST(Slice, attributes_and_then_inputs) {
  const TensorData x = counted({3, 4});
  expect_floats(
      one(9, "Slice", {3, 4}, {}, {{"starts", Ints{1}}, {"ends", Ints{-1}}, {"axes", Ints{1}}}).run({x}).at(0), {3, 2},
      {1, 2, 5, 6, 9, 10});
  expect_floats(one(13, "Slice", {3, 4}, {{0, 1}, {2, 1000}}).run({x}).at(0), {2, 3}, {1, 2, 3, 5, 6, 7});
  expect_floats(one(13, "Slice", {3, 4}, {{-1}, {-1000}, {0}, {-2}}).run({x}).at(0), {2, 4},
                {8, 9, 10, 11, 0, 1, 2, 3});
  const int64_t most = std::numeric_limits<int64_t>::max();
  expect_floats(one(13, "Slice", {3, 4}, {{3}, {most}, {1}}).run({x}).at(0), {3, 1}, {3, 7, 11});
  EXPECT_NE(one(13, "Slice", {3, 4}, {{0}, {1}, {0}, {0}}).refusal().find("a step of Slice is 0"), std::string::npos);
  EXPECT_NE(one(13, "Slice", {3, 4}, {{0}, {1, 2}}).refusal().find("1 starts, 2 ends"), std::string::npos);
  EXPECT_NE(one(13, "Slice", {3, 4}, {{0}}).refusal().find("3 to 5 inputs"), std::string::npos);
}

TEST(Split, sizes_parts_and_uneven_parts) {
  const TensorData x = counted({7, 2});
  const auto rows = [&](const ModelBuilder& m) {
    Ints result;
    for (const TensorData& part : m.run({x})) result.push_back(part->shape[0]);
    return result;
  };
  EXPECT_EQ(rows(one(11, "Split", {7, 2}, {}, {{"split", Ints{3, 4}}}, {"a", "b"})), (Ints{3, 4}));
  EXPECT_EQ(rows(one(13, "Split", {7, 2}, {{5, 0, 2}}, {}, {"a", "b", "c"})), (Ints{5, 0, 2}));
  EXPECT_EQ(rows(one(18, "Split", {7, 2}, {}, {{"num_outputs", 3}}, {"a", "b", "c"})), (Ints{3, 3, 1}));
  expect_floats(one(13, "Split", {7, 2}, {}, {{"axis", 1}}, {"a", "b"}).run({x}).at(1), {7, 1},
                {1, 3, 5, 7, 9, 11, 13});
  EXPECT_NE(one(13, "Split", {7, 2}, {}, {}, {"a", "b"}).refusal().find("Split into 2 equal parts of 7"),
            std::string::npos);
  EXPECT_NE(one(13, "Split", {7, 2}, {{3, 3}}, {}, {"a", "b"}).refusal().find("relax-"), std::string::npos);
  EXPECT_NE(one(13, "Split", {7, 2}, {{7}}, {}, {"a", "b"}).refusal().find("1 sizes, but 2 outputs"),
            std::string::npos);
}

TEST(Concat, along_an_axis) {
  ModelBuilder m;
  m.input("a", {1, 2}).input("b", {2, 2}).node("Concat", {"a", "b"}, {"y"}, {{"axis", -2}}).output("y");
  expect_floats(m.run({counted({1, 2}), counted({2, 2})}).at(0), {3, 2}, {0, 1, 0, 1, 2, 3});
  ModelBuilder wrong;
  wrong.input("a", {1, 2}).input("b", {2, 3}).node("Concat", {"a", "b"}, {"y"}, {{"axis", 0}}).output("y");
  EXPECT_NE(wrong.refusal().find("they differ in dimension 1"), std::string::npos);
}

TEST(Pad, attributes_inputs_axes_and_modes) {
  const TensorData x = counted({2, 2});
  expect_floats(one(2 + 4, "Pad", {2, 2}, {}, {{"pads", Ints{0, 1, 0, 0}}, {"value", 9.0f}}).run({x}).at(0), {2, 3},
                {9, 0, 1, 9, 2, 3});
  expect_floats(one(13, "Pad", {2, 2}, {{0, 0, 1, 1}}).run({x}).at(0), {3, 3}, {0, 1, 0, 2, 3, 0, 0, 0, 0});
  expect_floats(one(13, "Pad", {2, 2}, {{0, -1, 0, 0}}).run({x}).at(0), {2, 1}, {1, 3});
  expect_floats(one(13, "Pad", {2, 2}, {{0, 0, 0, 1}}, {{"mode", "reflect"}}).run({x}).at(0), {2, 3},
                {0, 1, 0, 2, 3, 2});
  expect_floats(one(13, "Pad", {2, 2}, {{0, 1, 0, 0}}, {{"mode", "edge"}}).run({x}).at(0), {2, 3}, {0, 0, 1, 2, 2, 3});
  expect_floats(one(19, "Pad", {2, 2}, {{0, 1, 0, 1}}, {{"mode", "wrap"}}).run({x}).at(0), {2, 4},
                {1, 0, 1, 0, 3, 2, 3, 2});
  ModelBuilder m(18);
  m.input("x", {2, 2}).integers("pads", {2}, {1, 0}).weight("v", {}, {7}).integers("axes", {1}, {-1});
  m.node("Pad", {"x", "pads", "v", "axes"}, {"y"}).output("y");
  expect_floats(m.run({x}).at(0), {2, 3}, {7, 0, 1, 7, 2, 3});
  EXPECT_NE(one(13, "Pad", {2, 2}, {{0, 0}}).refusal().find("2 pads for 2 axes"), std::string::npos);
  EXPECT_NE(one(13, "Pad", {2, 2}, {{0, 0, 0, 0}}, {{"mode", "wrap"}}).refusal().find("'mode' is 'wrap'"),
            std::string::npos);
}

TEST(Expand, both_ways) {
  expect_floats(one(13, "Expand", {2, 1}, {{3}}).run({counted({2, 1})}).at(0), {2, 3}, {0, 0, 0, 1, 1, 1});
  expect_floats(one(13, "Expand", {2}, {{2, 1}}).run({counted({2})}).at(0), {2, 2}, {0, 1, 0, 1});
  EXPECT_NE(one(13, "Expand", {2}, {{-5}}).refusal().find("-5 is negative"), std::string::npos);
  EXPECT_NE(one(13, "Expand", {2}, {{3}}).refusal().find("cannot broadcast [2] with [3]"), std::string::npos);
}

TEST(Tile, repeats_each_dimension) {
  expect_floats(one(13, "Tile", {1, 2}, {{2, 2}}).run({counted({1, 2})}).at(0), {2, 4}, {0, 1, 0, 1, 0, 1, 0, 1});
  EXPECT_NE(one(13, "Tile", {1, 2}, {{2}}).refusal().find("1 repeats for a tensor of rank 2"), std::string::npos);
}

TEST(Gather, negative_indices_count_from_the_end) {
  expect_floats(one(13, "Gather", {2, 3}, {{-1, 0}}, {{"axis", 1}}).run({counted({2, 3})}).at(0), {2, 2}, {2, 0, 5, 3});
  EXPECT_NE(
      one(13, "Gather", {2, 3}, {{3}}, {{"axis", 1}}).refusal().find("holds 3 at [0], but indices into axis 1 of"),
      std::string::npos);
}

TEST(Shape, whole_or_in_part) {
  const auto shape = [](const std::vector<Attribute>& a) {
    return one(15, "Shape", {2, 3, 4}, {}, a).run({counted({2, 3, 4})}).at(0);
  };
  expect_longs(shape({}), {3}, {2, 3, 4});
  expect_longs(shape({{"start", 1}}), {2}, {3, 4});
  expect_longs(shape({{"start", -1}}), {1}, {4});
  expect_longs(shape({{"end", -1}}), {2}, {2, 3});
  expect_longs(shape({{"start", 2}, {"end", 1}}), {0}, {});
  expect_longs(one(13, "Size", {2, 3, 4}, {}).run({counted({2, 3, 4})}).at(0), {}, {24});
}

TEST(Constant, in_every_form) {
  const auto run = [](int opset, const std::vector<Attribute>& a) {
    ModelBuilder m(opset);
    return m.node("Constant", {}, {"y"}, a).output("y").run({}).at(0);
  };
  expect_floats(run(9, {{"value", tensor_proto(floats({2}, {1, 2}))}}), {2}, {1, 2});
  expect_floats(run(13, {{"value_float", 2.5f}}), {}, {2.5});
  expect_longs(run(13, {{"value_int", 7}}), {}, {7});
  expect_floats(run(13, {{"value_floats", std::vector<float>{1, 2}}}), {2}, {1, 2});
  expect_longs(run(13, {{"value_ints", Ints{1, 2}}}), {2}, {1, 2});
  const auto refused = [](const std::vector<Attribute>& a) {
    ModelBuilder m(13);
    return m.node("Constant", {}, {"y"}, a).output("y").refusal();
  };
  EXPECT_NE(refused({}).find("has one value, but the node has 0"), std::string::npos);
  EXPECT_NE(refused({{"value_int", 7}, {"value_float", 1.0f}}).find("the node has 2"), std::string::npos);
  EXPECT_NE(refused({{"value_string", "a"}, {"value_int", 7}}).find("the node has 2"), std::string::npos);
}

TEST(ConstantOfShape, of_any_type) {
  const auto run = [](const Ints& shape, const std::vector<Attribute>& a) {
    ModelBuilder m(13);
    m.integers("s", {static_cast<int64_t>(shape.size())}, shape);
    return m.node("ConstantOfShape", {"s"}, {"y"}, a).output("y").run({}).at(0);
  };
  expect_floats(run({2}, {}), {2}, {0, 0});
  expect_longs(run({2, 2}, {{"value", tensor_proto(longs({1}, {5}))}}), {2, 2}, {5, 5, 5, 5});
  expect_longs(run({0}, {{"value", tensor_proto(longs({1}, {5}))}}), {0}, {});
  expect_floats(run({}, {{"value", tensor_proto(floats({1}, {3}))}}), {}, {3});
}

TEST(Range, of_known_and_of_symbolic_ends) {
  ModelBuilder known(13);
  known.integers("a", {}, {10})
      .integers("b", {}, {3})
      .integers("c", {}, {-3})
      .node("Range", {"a", "b", "c"}, {"y"})
      .output("y");
  expect_longs(known.run({}).at(0), {3}, {10, 7, 4});
  ModelBuilder symbolic(13);
  symbolic.input("x", {"n"}).integers("zero", {}, {0}).integers("two", {}, {2});
  symbolic.node("Size", {"x"}, {"n"}).node("Range", {"zero", "n", "two"}, {"y"}).output("y");
  expect_longs(symbolic.run({counted({5})}).at(0), {3}, {0, 2, 4});
  ModelBuilder floating(13);
  floating.weight("a", {}, {1})
      .weight("b", {}, {2})
      .weight("c", {}, {0.25})
      .node("Range", {"a", "b", "c"}, {"y"})
      .output("y");
  expect_floats(floating.run({}).at(0), {4}, {1, 1.25, 1.5, 1.75});
  ModelBuilder later(13);
  later.input("a", {}).input("b", {}).input("c", {}).node("Range", {"a", "b", "c"}, {"y"}).output("y");
  expect_floats(later.run({floats({}, {3}), floats({}, {0}), floats({}, {-1.25})}).at(0), {3}, {3, 1.75, 0.5});
  expect_floats(later.run({floats({}, {3}), floats({}, {4}), floats({}, {-1.25})}).at(0), {0}, {});
  ModelBuilder zero(13);
  zero.integers("a", {}, {0})
      .integers("b", {}, {3})
      .integers("c", {}, {0})
      .node("Range", {"a", "b", "c"}, {"y"})
      .output("y");
  EXPECT_NE(zero.refusal().find("delta of Range is 0"), std::string::npos);
}

TEST(Dropout, is_the_identity_with_a_full_mask) {
  ModelBuilder m(10);
  m.input("x", {2}).node("Dropout", {"x"}, {"y", "mask"}, {{"ratio", 0.5f}}).output("y").output("mask");
  const auto outputs = m.run({floats({2}, {1, 2})});
  expect_floats(outputs.at(0), {2}, {1, 2});
  expect_close(outputs.at(1), bools({2}, {1, 1}));
}

// Each reduction over each set of axes, with and without keepdims, against a plain loop.
TEST(Reduce, all_ten) {
  const TensorData x = random_floats({2, 3, 4}, 20);
  struct Case {
    std::string type;
    double start;
    std::function<double(double, double)> step;
    std::function<double(double, double)> finish;  // total, count
  };
  const auto keep = [](double total, double) { return total; };
  const std::vector<Case> cases = {
      {"ReduceSum", 0, std::plus<>(), keep},
      {"ReduceMean", 0, std::plus<>(), std::divides<>()},
      {"ReduceMax", -1e30, [](double a, double b) { return std::max(a, b); }, keep},
      {"ReduceMin", 1e30, [](double a, double b) { return std::min(a, b); }, keep},
      {"ReduceProd", 1, std::multiplies<>(), keep},
      {"ReduceL1", 0, [](double a, double b) { return a + std::fabs(b); }, keep},
      {"ReduceL2", 0, [](double a, double b) { return a + b * b; }, [](double t, double) { return std::sqrt(t); }},
      {"ReduceSumSquare", 0, [](double a, double b) { return a + b * b; }, keep},
      {"ReduceLogSumExp", 0, [](double a, double b) { return a + std::exp(b); },
       [](double t, double) { return std::log(t); }},
  };
  for (const Case& c : cases)
    for (const Ints& axes : {Ints{}, Ints{1}, Ints{0, -1}, Ints{2, 0, 1}})
      for (const int keepdims : {0, 1}) {
        SCOPED_TRACE(c.type);
        std::vector<bool> gone(3, axes.empty());
        for (const int64_t axis : axes) gone[static_cast<size_t>(axis < 0 ? axis + 3 : axis)] = true;
        Ints dims;
        for (size_t d = 0; d < 3; ++d)
          if (!gone[d])
            dims.push_back(x->shape[d]);
          else if (keepdims)
            dims.push_back(1);
        std::map<int64_t, std::pair<double, double>> cells;
        for (int64_t i = 0; i < 24; ++i) {
          const int64_t index[] = {i / 12, i / 4 % 3, i % 4};
          int64_t at = 0;
          for (size_t d = 0; d < 3; ++d)
            if (!gone[d]) at = at * x->shape[d] + index[d];
          auto& cell = cells.try_emplace(at, c.start, 0).first->second;
          cell.first = c.step(cell.first, ir::float_at(*x, i));
          cell.second += 1;
        }
        std::vector<float> expected;
        for (const auto& [at, cell] : cells) expected.push_back(static_cast<float>(c.finish(cell.first, cell.second)));
        std::vector<Attribute> attributes{{"keepdims", keepdims}};
        expect_floats(
            one(18, c.type, {2, 3, 4}, axes.empty() ? std::vector<Ints>{} : std::vector<Ints>{axes}, attributes)
                .run({x})
                .at(0),
            dims, expected);
        if (!axes.empty()) attributes.push_back({"axes", axes});
        expect_floats(one(11, c.type, {2, 3, 4}, {}, attributes).run({x}).at(0), dims, expected);
      }
  expect_floats(one(18, "ReduceSum", {3}, {}, {{"noop_with_empty_axes", 1}}).run({counted({3})}).at(0), {3}, {0, 1, 2});
  expect_floats(one(18, "ReduceLogSum", {3}, {}).run({counted({3})}).at(0), {1}, {std::log(3.0f)});
  EXPECT_NE(one(18, "ReduceSum", {3}, {{1}}).refusal().find("axes 1 is outside a tensor of rank 1"), std::string::npos);
}

TEST(ArgMax, first_or_last_of_equals) {
  const TensorData x = floats({2, 3}, {1, 5, 5, 4, 4, 0});
  const auto run = [&](const std::string& type, const std::vector<Attribute>& a) {
    return one(13, type, {2, 3}, {}, a).run({x}).at(0);
  };
  expect_longs(run("ArgMax", {{"axis", 1}}), {2, 1}, {1, 0});
  expect_longs(run("ArgMax", {{"axis", -1}, {"keepdims", 0}, {"select_last_index", 1}}), {2}, {2, 1});
  expect_longs(run("ArgMin", {{"keepdims", 0}}), {3}, {0, 1, 1});
}

}  // namespace
}  // namespace lathe::onnx
