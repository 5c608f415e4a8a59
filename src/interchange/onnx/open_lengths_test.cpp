// Vectors of shapes, axes and pads whose length only the run tells, as where every extent of a model is a symbol: the
// declared rank of the result, or what the operator takes, says how long they must be, and the run checks it.
#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary

using Longs = std::vector<int64_t>;

// The model with its output declared to have that many dimensions, unless the number is negative.
ModelBuilder declaring(ModelBuilder m, int64_t rank) {
  if (rank < 0) return m;
  auto& declared = *m.proto.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type();
  declared.set_elem_type(Type::FLOAT);
  declared.mutable_shape();
  for (int64_t d = 0; d < rank; ++d) declared.mutable_shape()->add_dim()->set_dim_param("y" + std::to_string(d));
  return m;
}

// A node of x and of a vector of integers of unknown length; the result's rank is declared unless it is negative.
ModelBuilder open(int64_t opset, const std::string& type, const std::vector<Dim>& dims, int64_t rank,
                  const std::vector<Attribute>& attributes = {}) {
  ModelBuilder m(opset);
  m.input("x", dims).input("v", {"length"}, Type::INT64).node(type, {"x", "v"}, {"y"}, attributes).output("y");
  return declaring(std::move(m), rank);
}
TensorData vector(const Longs& values) { return longs({static_cast<int64_t>(values.size())}, values); }
TensorData six() { return floats({2, 3}, {1, 2, 3, 4, 5, 6}); }

Longs shape_after(const ModelBuilder& m, const Longs& v) { return m.run({six(), vector(v)}).at(0)->shape; }
bool fails_when_run(const ModelBuilder& m, const Longs& v) {
  const auto module = m.import();
  EXPECT_TRUE(module.ok()) << text_of(module.diagnostics());
  return module.ok() && !relax::evaluate(*module, "main", {six(), vector(v)}).ok();
}

TEST(open_lengths, shapes_are_as_long_as_the_declared_rank) {
  EXPECT_EQ(shape_after(open(14, "Reshape", {"n", "m"}, 3), {1, 3, -1}), (Longs{1, 3, 2}));
  EXPECT_TRUE(fails_when_run(open(14, "Reshape", {"n", "m"}, 3), {3, -1}));
  EXPECT_NE(open(14, "Reshape", {"n", "m"}, -1).refusal().find("number of its elements must be known"),
            std::string::npos);
  EXPECT_EQ(shape_after(open(13, "Unsqueeze", {"n", "m"}, 3), {1}), (Longs{2, 1, 3}));
  EXPECT_TRUE(fails_when_run(open(13, "Unsqueeze", {"n", "m"}, 3), {0, 1}));
  ModelBuilder squeeze = open(13, "Squeeze", {"a", "b", "c"}, 1);
  EXPECT_EQ(squeeze.run({floats({1, 2, 1}, {7, 8}), vector({0, -1})}).at(0)->shape, (Longs{2}));
}

TEST(open_lengths, expand_takes_shapes_shorter_than_the_input) {
  EXPECT_EQ(shape_after(open(13, "Expand", {"n", "m"}, 3), {4, 2, 3}), (Longs{4, 2, 3}));
  EXPECT_TRUE(fails_when_run(open(13, "Expand", {"n", "m"}, 3), {2, 3}));
  ModelBuilder shorter = open(13, "Expand", {"n", "m"}, 2);
  expect_floats(shorter.run({floats({2, 1}, {1, 2}), vector({3})}).at(0), {2, 3}, {1, 1, 1, 2, 2, 2});
}

TEST(open_lengths, reductions_over_any_number_of_axes) {
  const ModelBuilder kept = open(18, "ReduceSum", {"n", "m"}, -1);
  expect_floats(kept.run({six(), vector({1})}).at(0), {2, 1}, {6, 15});
  expect_floats(kept.run({six(), vector({-2, -1})}).at(0), {1, 1}, {21});
  expect_floats(kept.run({six(), vector({})}).at(0), {1, 1}, {21});
  EXPECT_TRUE(fails_when_run(kept, {0, 1, 0}));
  const ModelBuilder noop = open(18, "ReduceMean", {"n", "m"}, -1, {{"noop_with_empty_axes", 1}});
  expect_floats(noop.run({six(), vector({})}).at(0), {2, 3}, {1, 2, 3, 4, 5, 6});
  expect_floats(noop.run({six(), vector({0})}).at(0), {1, 3}, {2.5, 3.5, 4.5});
  const ModelBuilder dropped = open(18, "ReduceMax", {"n", "m"}, 1, {{"keepdims", 0}});
  expect_floats(dropped.run({six(), vector({0})}).at(0), {3}, {4, 5, 6});
  expect_floats(dropped.run({six(), vector({-1})}).at(0), {2}, {3, 6});
  EXPECT_TRUE(fails_when_run(dropped, {}));
  EXPECT_NE(open(18, "ReduceMax", {"n", "m"}, -1, {{"keepdims", 0}}).refusal().find("rank of the result be declared"),
            std::string::npos);
}

TEST(open_lengths, a_rank_is_told_through_what_keeps_it) {
  ModelBuilder m(18);
  m.input("x", {"n", "m"}).input("v", {"length"}, Type::INT64);
  m.node("ReduceSumSquare", {"x", "v"}, {"s"}, {{"keepdims", 0}}).node("Sqrt", {"s"}, {"y"}).output("y");
  EXPECT_NE(m.refusal().find("number of axes"), std::string::npos);
  auto& declared = *m.proto.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type();
  declared.set_elem_type(Type::FLOAT);
  declared.mutable_shape()->add_dim()->set_dim_param("left");
  expect_floats(m.run({floats({2, 2}, {3, 4, 0, 5}), vector({1})}).at(0), {2}, {5, 5});
}

TEST(open_lengths, pads_are_two_for_each_axis) {
  expect_floats(open(13, "Pad", {"n", "m"}, -1).run({six(), vector({0, 1, 1, 0})}).at(0), {3, 4},
                {0, 1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 0});
  EXPECT_TRUE(fails_when_run(open(13, "Pad", {"n", "m"}, -1), {1, 1}));
  ModelBuilder m(18);
  m.input("x", {"n", "m"}).input("p", {"pads"}, Type::INT64).input("a", {"axes"}, Type::INT64);
  m.node("Pad", {"x", "p", "", "a"}, {"y"}).output("y");
  expect_floats(m.run({six(), vector({1, 0}), vector({-1})}).at(0), {2, 4}, {0, 1, 2, 3, 0, 4, 5, 6});
  EXPECT_EQ(m.run({six(), vector({1, 0, 0, 2}), vector({1, 0})}).at(0)->shape, (Longs{4, 4}));
}

TEST(open_lengths, sizes_and_scales_are_one_for_each_axis) {
  ModelBuilder m(13);
  m.input("x", {"n", "m"}).input("s", {"scales"}).node("Resize", {"x", "", "s"}, {"y"}, {{"mode", "nearest"}});
  m.output("y");
  EXPECT_EQ(m.run({six(), floats({2}, {2, 1})}).at(0)->shape, (Longs{4, 3}));
  ModelBuilder parts(13);
  parts.input("x", {"n", "m"}).input("v", {"count"}, Type::INT64);
  parts.node("Split", {"x", "v"}, {"a", "b"}, {{"axis", 1}}).output("a").output("b");
  expect_floats(parts.run({six(), vector({1, 2})}).at(1), {2, 2}, {2, 3, 5, 6});
}

TEST(open_lengths, ranks_tell_how_many_coordinates_an_index_has) {
  ModelBuilder m(16);
  m.input("x", {"n", "m"}).input("i", {"k", "width"}, Type::INT64).input("u", {"k"});
  m.node("ScatterND", {"x", "i", "u"}, {"y"}).output("y");
  expect_floats(m.run({six(), longs({1, 2}, {1, 0}), floats({1}, {9})}).at(0), {2, 3}, {1, 2, 3, 9, 5, 6});
  const auto rows = relax::evaluate(*m.import(), "main", {six(), longs({1, 1}, {1}), floats({1}, {9})});
  EXPECT_FALSE(rows.ok());
}

TEST(open_extents, a_zero_point_is_one_or_one_along_the_axis) {
  ModelBuilder m(13);
  m.input("x", {"n", "m"}, Type::INT8).input("scale", {"s"}).input("zero", {"z"}, Type::INT8);
  m.node("DequantizeLinear", {"x", "scale", "zero"}, {"y"}).output("y");
  const auto bytes = [](Longs dims, const std::vector<int8_t>& values) {
    return ir::tensor_of<int8_t>(DType::int_(8), std::move(dims), values);
  };
  const TensorData x = bytes({2, 2}, {1, 2, 3, 4});
  expect_floats(m.run({x, floats({1}, {2}), bytes({1}, {1})}).at(0), {2, 2}, {0, 2, 4, 6});
  expect_floats(m.run({x, floats({2}, {2, 10}), bytes({2}, {1, 0})}).at(0), {2, 2}, {0, 20, 4, 40});
  EXPECT_FALSE(relax::evaluate(*m.import(), "main", {x, floats({3}, {1, 1, 1}), bytes({1}, {1})}).ok());
}

TEST(open_extents, a_signal_has_one_part_or_two) {
  ModelBuilder m(20);
  m.input("x", {"n", "parts"}).node("DFT", {"x"}, {"y"}).output("y");
  expect_close(m.run({floats({2, 1}, {1, 3})}).at(0), floats({2, 2}, {4, 0, -2, 0}));
  expect_close(m.run({floats({2, 2}, {1, 1, 3, 0})}).at(0), floats({2, 2}, {4, 1, -2, 1}));
  EXPECT_FALSE(relax::evaluate(*m.import(), "main", {floats({1, 3}, {1, 1, 1})}).ok());
}

TEST(open_extents, heads_of_keys_are_shared_and_their_size_scales) {
  ModelBuilder m(23);
  m.input("q", {"b", "hq", "s", "d"}).input("k", {"b", "hk", "t", "d"}).input("v", {"b", "hk", "t", "e"});
  m.input("mask", {"last"}).node("Attention", {"q", "k", "v", "mask"}, {"y"}).output("y");
  const TensorData k = floats({1, 1, 2, 4}, {0, 0, 0, 0, 2, 0, 0, 0}), v = floats({1, 1, 2, 1}, {0, 1});
  const TensorData q = floats({1, 2, 1, 4}, {0, 0, 0, 0, 3, 0, 0, 0});
  const float share = 1 / (1 + std::exp(-3.0f));  // 3 * 2 / sqrt(4)
  expect_close(m.run({q, k, v, floats({2}, {0, 0})}).at(0), floats({1, 2, 1, 1}, {0.5f, share}));
  expect_close(m.run({q, k, v, floats({1}, {7})}).at(0), floats({1, 2, 1, 1}, {0.5f, share}));
  const TensorData odd = floats({1, 3, 1, 4}, std::vector<float>(12, 0));
  EXPECT_FALSE(relax::evaluate(*m.import(), "main",
                               {odd, floats({1, 2, 1, 4}, std::vector<float>(8, 0)), floats({1, 2, 1, 1}, {0, 1}),
                                floats({1}, {0})})
                   .ok());
}

TEST(open_extents, states_of_any_channels_and_window) {
  ModelBuilder m(27);
  m.input("x", {"b", "c", "t"}).input("w", {"c", "one", "k"}).node("CausalConvWithState", {"x", "w"}, {"y", "s"});
  m.output("y").output("s");
  const auto y = m.run({floats({1, 2, 3}, {1, 2, 3, 4, 5, 6}), floats({2, 1, 2}, {10, 1, 0, 2})});
  expect_floats(y.at(0), {1, 2, 3}, {1, 12, 23, 8, 10, 12});
  expect_floats(y.at(1), {1, 2, 1}, {3, 6});
}

TEST(open_extents, transposed_convolutions_crop_what_is_too_much) {
  for (const bool known : {true, false}) {
    ModelBuilder m(11);
    m.input("x", {1, 1, known ? Dim(2) : Dim("n")}).weight("w", {1, 1, 3}, {1, 10, 100});
    m.node("ConvTranspose", {"x", "w"}, {"y"}, {{"auto_pad", "SAME_UPPER"}, {"strides", Longs{2}}}).output("y");
    expect_floats(m.run({floats({1, 1, 2}, {1, 2})}).at(0), {1, 1, 4}, {1, 10, 102, 20});
  }
}

// The extents of ConstantOfShape decide how many dimensions there are, and Transpose how many there must be.
ModelBuilder zeros(int axes, int64_t declared) {
  ModelBuilder m = ModelBuilder(20).input("v", {"length"}, Type::INT64);
  std::vector<int64_t> order(static_cast<size_t>(axes));
  std::iota(order.rbegin(), order.rend(), 0);
  m.node("ConstantOfShape", {"v"}, {"zeros"});
  if (axes == 0)
    m.node("Exp", {"zeros"}, {"y"}).output("y");
  else
    m.node("Transpose", {"zeros"}, {"y"}, {{"perm", order}}).output("y");
  return declaring(std::move(m), declared);
}

TEST(open_lengths, one_length_that_fits_is_the_inputs) {
  const ModelBuilder m = zeros(3, -1);
  expect_floats(m.run({vector({1, 2, 3})}).at(0), {3, 2, 1}, {0, 0, 0, 0, 0, 0});
  const auto module = m.import();
  ASSERT_TRUE(module.ok());
  EXPECT_FALSE(relax::evaluate(*module, "main", {vector({1, 2})}).ok());
  // What is told of the length is kept to.
  EXPECT_NE(m.refusal({{{"length", {4, 6, {}}}}}).find("number of its elements must be known"), std::string::npos);
  expect_floats(m.run({vector({1, 2, 3})}, {{{"length", {2, 6, {}}}}}).at(0), {3, 2, 1}, {0, 0, 0, 0, 0, 0});
}

TEST(open_lengths, declared_ranks_choose_among_lengths) {
  expect_floats(zeros(0, 2).run({vector({1, 2})}).at(0), {1, 2}, {1, 1});
  EXPECT_NE(zeros(0, -1).refusal().find("--dim length=0"), std::string::npos);
  EXPECT_NE(zeros(3, 2).refusal().find("number of its elements must be known"), std::string::npos);
}

}  // namespace
}  // namespace lathe::onnx
