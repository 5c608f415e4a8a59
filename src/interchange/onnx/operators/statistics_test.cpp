// Normalisations, quantization, losses, resampling, attention, and products beyond matrices: values worked out by hand
// or by plain loops.
#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary

ModelBuilder float_node(int opset, const std::string& type, const std::vector<std::vector<Dim>>& shapes,
                        const std::vector<Attribute>& attributes = {}) {
  ModelBuilder m(opset);
  std::vector<std::string> names;
  for (const auto& shape : shapes) {
    names.push_back("x" + std::to_string(names.size()));
    m.input(names.back(), shape);
  }
  m.node(type, names, {"y"}, attributes).output("y");
  return m;
}

std::vector<float> elements(const TensorData& x) {
  std::vector<float> values;
  for (int64_t i = 0; i < x->elements(); ++i) values.push_back(static_cast<float>(ir::float_at(*x, i)));
  return values;
}

TEST(GroupNormalization, has_mean_zero_in_each_group) {
  const TensorData x = random_floats({2, 4, 3}, 1), ones = floats({4}, {1, 1, 1, 1}), zeros = floats({4}, {0, 0, 0, 0});
  const auto y = elements(
      float_node(21, "GroupNormalization", {{2, 4, 3}, {4}, {4}}, {{"num_groups", 2}}).run({x, ones, zeros})[0]);
  for (size_t group = 0; group < 4; ++group) {
    double sum = 0, squares = 0;
    for (size_t i = 6 * group; i < 6 * group + 6; ++i) {
      sum += y[i];
      squares += y[i] * y[i];
    }
    EXPECT_NEAR(sum, 0, 1e-4);
    EXPECT_NEAR(squares, 6, 1e-2);
  }
  // Before opset 21 scale and bias belong to groups.
  const auto older = elements(float_node(18, "GroupNormalization", {{2, 4, 3}, {2}, {2}}, {{"num_groups", 2}})
                                  .run({x, floats({2}, {1, 2}), floats({2}, {0, 5})})[0]);
  EXPECT_NEAR(older[7], 2 * y[7] + 5, 1e-4);
  const auto instance = elements(
      float_node(22, "InstanceNormalization", {{2, 4, 3}, {4}, {4}}).run({x, ones, floats({4}, {0, 1, 2, 3})})[0]);
  EXPECT_NEAR(instance[3] + instance[4] + instance[5], 3, 1e-4);
}

TEST(RMSNormalization, divides_by_the_root_of_the_mean_square) {
  const auto y = float_node(23, "RMSNormalization", {{1, 2}, {2}}, {{"epsilon", 0.0f}})
                     .run({floats({1, 2}, {3, 4}), floats({2}, {1, 10})});
  expect_close(y[0], floats({1, 2}, {0.848528f, 11.31371f}));
}

TEST(LpNormalization, of_zeros_is_zero) {
  const auto y = float_node(22, "LpNormalization", {{2, 2}}).run({floats({2, 2}, {3, 4, 0, 0})});
  expect_close(y[0], floats({2, 2}, {0.6f, 0.8f, 0, 0}));
}

TEST(LRN, sums_over_channels_that_are_there) {
  const auto y = float_node(13, "LRN", {{1, 3, 1}}, {{"size", 3}, {"alpha", 3.0f}, {"beta", 1.0f}, {"bias", 1.0f}})
                     .run({floats({1, 3, 1}, {1, 2, 3})});
  expect_close(y[0], floats({1, 3, 1}, {1.0f / 6, 2.0f / 15, 3.0f / 14}));
}

TEST(QuantizeLinear, rounds_halves_to_even_and_saturates) {
  ModelBuilder m(21);
  m.input("x", {6}).weight("scale", {}, {2});
  m.node("QuantizeLinear", {"x", "scale"}, {"y"}, {{"output_dtype", static_cast<int64_t>(Type::INT8)}}).output("y");
  const TensorData y = m.run({floats({6}, {1, 3, -1, 1000, -1000, 4})})[0];
  EXPECT_EQ(y->dtype, DType::int_(8));
  EXPECT_EQ(elements(ir::tensor_of<float>(DType::float32(), {6},
                                          [&] {
                                            std::vector<float> values;
                                            for (int64_t i = 0; i < 6; ++i)
                                              values.push_back(static_cast<float>(ir::int_at(*y, i)));
                                            return values;
                                          }())),
            (std::vector<float>{0, 2, 0, 127, -128, 2}));
}

TEST(DequantizeLinear, by_axis_and_by_block) {
  ModelBuilder m(21);
  m.input("x", {2, 2}, Type::INT32).weight("scale", {2}, {2, 10});
  m.node("DequantizeLinear", {"x", "scale"}, {"y"}, {{"axis", 0}}).output("y");
  const TensorData x = ir::tensor_of<int32_t>(DType::int_(32), {2, 2}, {1, 2, 3, 4});
  expect_floats(m.run({x})[0], {2, 2}, {2, 4, 30, 40});
  ModelBuilder blocks(21);
  blocks.input("x", {1, 4}, Type::INT32).weight("scale", {1, 2}, {2, 10});
  blocks.node("DequantizeLinear", {"x", "scale"}, {"y"}, {{"axis", 1}, {"block_size", 2}}).output("y");
  expect_floats(blocks.run({ir::tensor_of<int32_t>(DType::int_(32), {1, 4}, {1, 2, 3, 4})})[0], {1, 4}, {2, 4, 30, 40});
}

TEST(NegativeLogLikelihoodLoss, weighs_and_ignores) {
  ModelBuilder m(13);
  m.input("x", {3, 2}).input("t", {3}, Type::INT64).weight("w", {2}, {1, 3});
  m.node("NegativeLogLikelihoodLoss", {"x", "t", "w"}, {"y"}, {{"ignore_index", -1}}).output("y");
  // (1 * 1 + 3 * 4) / (1 + 3)
  const auto y = m.run({floats({3, 2}, {-1, -2, -3, -4, -5, -6}), longs({3}, {0, 1, -1})});
  expect_floats(y[0], {}, {3.25f});
}

TEST(SoftmaxCrossEntropyLoss, of_equal_scores_is_the_logarithm_of_their_number) {
  ModelBuilder m(13);
  m.input("x", {2, 4}).input("t", {2}, Type::INT64);
  m.node("SoftmaxCrossEntropyLoss", {"x", "t"}, {"y"}).output("y");
  const auto y = m.run({floats({2, 4}, std::vector<float>(8, 0.5f)), longs({2}, {3, 0})});
  expect_close(y[0], floats({}, {1.3862944f}));
}

TEST(Resize, linear_nearest_and_shrinking) {
  const auto resized = [](const std::vector<Attribute>& attributes, float scale, const TensorData& x) {
    ModelBuilder m(19);
    m.input("x", {x->shape[0]}).weight("scales", {1}, {scale});
    m.node("Resize", {"x", "", "scales"}, {"y"}, attributes).output("y");
    return m.run({x})[0];
  };
  const TensorData x = floats({2}, {0, 4});
  expect_floats(resized({{"mode", "linear"}}, 2, x), {4}, {0, 1, 3, 4});
  expect_floats(resized({{"mode", "nearest"}}, 2, x), {4}, {0, 0, 4, 4});
  expect_floats(resized({{"mode", "linear"}, {"coordinate_transformation_mode", "align_corners"}}, 2.5f, x), {5},
                {0, 1, 2, 3, 4});
  const TensorData ramp = floats({4}, {0, 2, 4, 6});
  expect_floats(resized({{"mode", "linear"}}, 0.5f, ramp), {2}, {1, 5});
  // With antialiasing the triangle is twice as wide; weights beyond the border fall on the border cell.
  expect_close(resized({{"mode", "linear"}, {"antialias", 1}}, 0.5f, ramp), floats({2}, {1.25f, 4.75f}));
}

TEST(Resize, to_sizes_that_the_model_gets) {
  ModelBuilder m(19);
  m.input("x", {"n"}).input("s", {1}, Type::INT64);
  m.node("Resize", {"x", "", "", "s"}, {"y"}, {{"mode", "linear"}}).output("y");
  expect_floats(m.run({floats({2}, {0, 4}), longs({1}, {4})})[0], {4}, {0, 1, 3, 4});
}

TEST(ConvTranspose, spreads_each_element_over_the_kernel) {
  const TensorData x = floats({1, 1, 3}, {1, 2, 3}), w = floats({1, 1, 2}, {10, 1});
  const auto spread = [&](const std::vector<Attribute>& attributes) {
    return float_node(11, "ConvTranspose", {{1, 1, 3}, {1, 1, 2}}, attributes).run({x, w})[0];
  };
  expect_floats(spread({}), {1, 1, 4}, {10, 21, 32, 3});
  expect_floats(spread({{"strides", std::vector<int64_t>{2}}}), {1, 1, 6}, {10, 1, 20, 2, 30, 3});
  expect_floats(spread({{"pads", std::vector<int64_t>{1, 1}}}), {1, 1, 2}, {21, 32});
  expect_floats(spread({{"strides", std::vector<int64_t>{2}}, {"output_padding", std::vector<int64_t>{1}}}), {1, 1, 7},
                {10, 1, 20, 2, 30, 3, 0});
}

TEST(Einsum, sums_what_the_result_leaves_out) {
  const TensorData a = floats({2, 3}, {1, 2, 3, 4, 5, 6}), b = floats({3, 2}, {1, 0, 0, 1, 1, 1});
  const auto value = [](const char* equation, const std::vector<std::vector<Dim>>& shapes,
                        const std::vector<TensorData>& inputs) {
    return float_node(12, "Einsum", shapes, {{"equation", equation}}).run(inputs)[0];
  };
  expect_floats(value("ij,jk->ik", {{2, 3}, {3, 2}}, {a, b}), {2, 2}, {4, 5, 10, 11});
  expect_floats(value("ij->ji", {{2, 3}}, {a}), {3, 2}, {1, 4, 2, 5, 3, 6});
  expect_floats(value("...j->...", {{2, 3}}, {a}), {2}, {6, 15});
  expect_floats(value("ij , ij", {{2, 3}, {2, 3}}, {a, a}), {}, {91});
  EXPECT_NE(float_node(12, "Einsum", {{2, 3}}, {{"equation", "ij->ik"}}).refusal().find("no operand has"),
            std::string::npos);
  EXPECT_NE(float_node(12, "Einsum", {{2, 3}}, {{"equation", "ijk->i"}}).refusal().find("an operand of 2 dimensions"),
            std::string::npos);
}

TEST(Attention, without_differences_is_the_mean_and_causal_sees_the_past_alone) {
  const auto attended = [](const std::vector<Attribute>& attributes) {
    return float_node(23, "Attention", {{1, 1, 2, 1}, {1, 1, 2, 1}, {1, 1, 2, 1}}, attributes)
        .run({floats({1, 1, 2, 1}, {0, 0}), floats({1, 1, 2, 1}, {1, 2}), floats({1, 1, 2, 1}, {10, 20})})[0];
  };
  expect_floats(attended({}), {1, 1, 2, 1}, {15, 15});
  expect_floats(attended({{"is_causal", 1}}), {1, 1, 2, 1}, {10, 15});
}

// FlexAttention of keys [0, 2 ln 3] with a graph that makes `y` of `x` for the attribute of that name.
ModelBuilder flexible(const std::string& attribute, const std::function<void(ModelBuilder&)>& inside) {
  ModelBuilder inner(26), m(26);
  inner.input("x", {"b", "h", "l", "s"});
  inside(inner);
  inner.output("y");
  m.input("q", {1, 2, 1, 4}).input("k", {1, 1, "t", 4}).input("v", {1, 1, "t", 1});
  m.node("FlexAttention", {"q", "k", "v"}, {"z"}).output("z");
  auto& node = *m.proto.mutable_graph()->mutable_node(0);
  node.set_domain("ai.onnx.preview");
  if (!attribute.empty()) {
    auto& graph = *node.add_attribute();
    graph.set_name(attribute);
    graph.set_type(schema::AttributeProto::GRAPH);
    *graph.mutable_g() = inner.proto.graph();
  }
  auto& opset = *m.proto.add_opset_import();
  opset.set_domain("ai.onnx.preview");
  opset.set_version(1);
  return m;
}

TEST(FlexAttention, graphs_change_scores_and_shares) {
  const float ln9 = 2 * std::log(3.0f);
  const TensorData q = floats({1, 2, 1, 4}, {1, 0, 0, 0, 0, 0, 0, 0});
  const TensorData k = floats({1, 1, 2, 4}, {0, 0, 0, 0, ln9, 0, 0, 0}), v = floats({1, 1, 2, 1}, {0, 8});
  const auto run = [&](const std::string& attribute, const std::function<void(ModelBuilder&)>& inside) {
    return flexible(attribute, inside).run({q, k, v})[0];
  };
  const auto same = [](ModelBuilder& m) { m.node("Identity", {"x"}, {"y"}); };
  expect_close(run("", same), floats({1, 2, 1, 1}, {6, 4}));  // shares 1/4, 3/4 and halves
  const auto doubled = [](ModelBuilder& m) { m.node("Add", {"x", "x"}, {"y"}); };
  expect_close(run("score_mod", doubled), floats({1, 2, 1, 1}, {7.2f, 4}));
  expect_close(run("prob_mod", doubled), floats({1, 2, 1, 1}, {12, 8}));
}

TEST(FlexAttention, graphs_keep_type_and_shape) {
  const auto shaped = [](ModelBuilder& m) { m.node("Flatten", {"x"}, {"y"}); };
  EXPECT_NE(flexible("score_mod", shaped).refusal().find("score_mod gives"), std::string::npos);
  const auto more = [](ModelBuilder& m) { m.node("Identity", {"x"}, {"y"}).output("x"); };
  EXPECT_NE(flexible("prob_mod", more).refusal().find("1 inputs and 2 outputs"), std::string::npos);
}

TEST(RotaryEmbedding, turns_pairs_by_their_angle) {
  const auto turned = [](int interleaved) {
    return float_node(23, "RotaryEmbedding", {{1, 1, 1, 4}, {1, 1, 2}, {1, 1, 2}}, {{"interleaved", interleaved}})
        .run({floats({1, 1, 1, 4}, {1, 2, 3, 4}), floats({1, 1, 2}, {0, 1}), floats({1, 1, 2}, {1, 0})})[0];
  };
  expect_floats(turned(0), {1, 1, 1, 4}, {-3, 2, 1, 4});
  expect_floats(turned(1), {1, 1, 1, 4}, {-2, 1, 3, 4});
}

TEST(Hardening, shapes_do_not_wrap) {
  ModelBuilder product(13);
  product.input("x", {2}).integers("a", {1}, {int64_t{1} << 40}).integers("b", {1}, {int64_t{1} << 30});
  product.node("Mul", {"a", "b"}, {"s"}).node("Expand", {"x", "s"}, {"y"}).output("y");
  EXPECT_NE(product.refusal().find("more than 64 bits hold"), std::string::npos) << product.refusal();
  ModelBuilder tile(13);
  tile.input("x", {int64_t{1} << 20, 0}).integers("r", {2}, {int64_t{1} << 46, 1});
  tile.node("Tile", {"x", "r"}, {"y"}).output("y");
  EXPECT_NE(tile.refusal().find("more than 64 bits count"), std::string::npos) << tile.refusal();
}

TEST(Hardening, ranks_above_64_are_refused) {
  ModelBuilder m(13);
  m.input("x", std::vector<Dim>(60, 1)).integers("a", {8}, {0, 1, 2, 3, 4, 5, 6, 7});
  m.node("Unsqueeze", {"x", "a"}, {"y"}).output("y");
  EXPECT_NE(m.refusal().find("68 dimensions; 64 is the most"), std::string::npos) << m.refusal();
}

TEST(Hardening, names_in_messages_stay_a_line) {
  ModelBuilder m(13);
  m.input("x", {2}).node("Nothing" + std::string(5000, 'z'), {"x"}, {std::string(5000, 'y')});
  m.output(std::string(5000, 'y'));
  EXPECT_LT(m.refusal().size(), 1000u);
}

}  // namespace
}  // namespace lathe::onnx
