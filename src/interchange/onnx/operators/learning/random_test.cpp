// What is drawn: the generator's own numbers, their distribution, and that they come again.
#include "interchange/onnx/model_fixture.h"
#include "ops/build.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary

ModelBuilder drawing(const std::string& type, const std::vector<Attribute>& attributes) {
  ModelBuilder m(22);
  m.node(type, {}, {"y"}, attributes).output("y");
  return m;
}

std::pair<double, double> mean_and_deviation(const TensorData& data) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < data->elements(); ++i) {
    sum += ir::float_at(*data, i);
    squares += ir::float_at(*data, i) * ir::float_at(*data, i);
  }
  const double count = static_cast<double>(data->elements()), mean = sum / count;
  return {mean, std::sqrt(squares / count - mean * mean)};
}

TEST(RandomUniform, counts_through_the_outputs_of_SplitMix64) {
  EXPECT_EQ(ops::build::stream_of(1234567), 6457827717110365317u);  // published with the generator
  uint64_t state = ops::build::stream_of(std::bit_cast<uint32_t>(3.0f));
  const auto y =
      drawing("RandomUniform", {{"shape", std::vector<int64_t>{2, 3}}, {"seed", 3.0f}, {"dtype", 11}}).run({});
  ASSERT_EQ(y[0]->dtype, DType::float_(64));
  for (int64_t i = 0; i < 6; ++i) {
    const uint64_t next = ops::build::stream_of(state);
    EXPECT_EQ(ir::float_at(*y[0], i), std::ldexp(static_cast<double>(next >> 11), -53)) << i;
    state += 0x9e3779b97f4a7c15;
  }
}

TEST(RandomUniform, fills_its_range_evenly) {
  const std::vector<Attribute> attributes{{"shape", std::vector<int64_t>{1000}}, {"low", -2.0f}, {"high", 4.0f}};
  const auto y = drawing("RandomUniform", attributes).run({});
  const auto [mean, deviation] = mean_and_deviation(y[0]);
  EXPECT_NEAR(mean, 1, 0.2);
  EXPECT_NEAR(deviation, 6 / std::sqrt(12), 0.1);
  for (int64_t i = 0; i < 1000; ++i) EXPECT_LE(std::abs(ir::float_at(*y[0], i) - 1), 3);
  expect_close(drawing("RandomUniform", attributes).run({})[0], y[0], 0);
}

TEST(RandomNormal, has_its_mean_and_deviation) {
  const auto y = drawing("RandomNormal", {{"shape", std::vector<int64_t>{1000}}, {"mean", 5.0f}, {"scale", 0.5f}});
  const auto [mean, deviation] = mean_and_deviation(y.run({})[0]);
  EXPECT_NEAR(mean, 5, 0.06);
  EXPECT_NEAR(deviation, 0.5, 0.04);
}

TEST(RandomNormal, of_no_shape_or_a_negative_one_is_refused) {
  EXPECT_NE(drawing("RandomNormal", {}).refusal().find("'shape' is missing"), std::string::npos);
  EXPECT_NE(drawing("RandomNormal", {{"shape", std::vector<int64_t>{-1}}}).refusal().find("extent of -1"),
            std::string::npos);
  EXPECT_NE(drawing("RandomNormal", {{"shape", std::vector<int64_t>{1}}, {"dtype", 7}}).refusal().find("are floats"),
            std::string::npos);
}

TEST(RandomUniformLike, takes_the_shape_at_run_time_and_differs_by_node) {
  ModelBuilder m(22);
  m.input("x", {"n", 3});
  m.node("RandomUniformLike", {"x"}, {"a"}).node("RandomUniformLike", {"x"}, {"b"}).output("a").output("b");
  const auto y = m.run({random_floats({4, 3}, 1)});
  EXPECT_EQ(y[0]->shape, (std::vector<int64_t>{4, 3}));
  EXPECT_NE(ir::float_at(*y[0], 0), ir::float_at(*y[1], 0));
  EXPECT_NE(ir::float_at(*y[0], 0), ir::float_at(*y[0], 1));
}

TEST(Bernoulli, is_one_as_often_as_the_probability_says) {
  ModelBuilder m(22);
  m.input("x", {1000}).node("Bernoulli", {"x"}, {"y"}, {{"dtype", 7}}).output("y");
  std::vector<float> chances(1000, 0.3f);
  chances[0] = 0;
  chances[1] = 1;
  const auto y = m.run({floats({1000}, chances)});
  int64_t ones = 0;
  for (int64_t i = 0; i < 1000; ++i) ones += ir::int_at(*y[0], i);
  EXPECT_EQ(ir::int_at(*y[0], 0), 0);
  EXPECT_EQ(ir::int_at(*y[0], 1), 1);
  EXPECT_NEAR(static_cast<double>(ones), 300, 50);
}

TEST(Multinomial, chooses_by_the_exponentials) {
  ModelBuilder m(22);
  m.input("x", {2, 3}).node("Multinomial", {"x"}, {"y"}, {{"sample_size", 500}, {"dtype", 7}}).output("y");
  const float never = -std::numeric_limits<float>::infinity();
  const auto y = m.run({floats({2, 3}, {0, never, std::log(3.0f), 7, never, never})});
  ASSERT_EQ(y[0]->shape, (std::vector<int64_t>{2, 500}));
  std::array<int64_t, 3> first{};
  for (int64_t i = 0; i < 500; ++i) {
    ++first.at(static_cast<size_t>(ir::int_at(*y[0], i)));
    EXPECT_EQ(ir::int_at(*y[0], 500 + i), 0);
  }
  EXPECT_EQ(first[1], 0);
  EXPECT_NEAR(static_cast<double>(first[2]), 375, 40);
}

TEST(Multinomial, of_no_classes_or_samples_is_refused) {
  const auto refused = [](const std::vector<Dim>& dims, const std::vector<Attribute>& attributes) {
    ModelBuilder m(22);
    m.input("x", dims).node("Multinomial", {"x"}, {"y"}, attributes).output("y");
    return m.refusal();
  };
  EXPECT_NE(refused({2, 0}, {}).find("no classes"), std::string::npos);
  EXPECT_NE(refused({2, 3}, {{"sample_size", 0}}).find("number of samples is 0"), std::string::npos);
  EXPECT_NE(refused({2, 3}, {{"dtype", 1}}).find("int32 or int64"), std::string::npos);
  EXPECT_NE(refused({3}, {}).find("2 are needed"), std::string::npos);
}

TEST(Dropout, in_training_drops_a_share_and_makes_up_for_it) {
  ModelBuilder m(22);
  m.input("x", {1000}).input("t", {}, Type::BOOL).weight("r", {}, {0.25f});
  m.node("Dropout", {"x", "r", "t"}, {"y", "mask"}, {{"seed", 1}}).output("y").output("mask");
  const TensorData x = floats({1000}, std::vector<float>(1000, 3));
  const auto trained = m.run({x, bools({}, {1})}), used = m.run({x, bools({}, {0})});
  int64_t kept = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    const int64_t is_kept = ir::int_at(*trained[1], i);
    kept += is_kept;
    EXPECT_EQ(ir::float_at(*trained[0], i), is_kept ? 4 : 0);
    EXPECT_EQ(ir::int_at(*used[1], i), 1);
  }
  EXPECT_NEAR(static_cast<double>(kept), 750, 50);
  expect_close(used[0], x, 0);
}

}  // namespace
}  // namespace lathe::onnx
