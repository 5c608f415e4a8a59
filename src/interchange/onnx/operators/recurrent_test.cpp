// Recurrent cells: values worked out from the equations, and what is refused.
#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary

// One cell of one number with the weights `w`, `r` (a number a gate), on `steps` steps of a batch.
ModelBuilder one_number(const std::string& type, int64_t steps, int64_t batch, const std::vector<float>& w,
                        const std::vector<float>& r, const std::vector<std::string>& more,
                        std::vector<Attribute> attributes, int opset = 14) {
  ModelBuilder m(opset);
  const auto gates = static_cast<int64_t>(w.size());
  m.input("x", {steps, batch, 1}).weight("w", {1, gates, 1}, w).weight("r", {1, gates, 1}, r);
  std::vector<std::string> names{"x", "w", "r"};
  names.insert(names.end(), more.begin(), more.end());
  attributes.emplace_back("hidden_size", 1);
  m.node(type, names, {"y", "last"}, attributes).output("y").output("last");
  return m;
}

TEST(RNN, goes_from_step_to_step) {
  const auto y = one_number("RNN", 3, 1, {0.5f}, {-1}, {}, {}).run({floats({3, 1, 1}, {1, 2, -1})});
  const float a = std::tanh(0.5f), b = std::tanh(1 - a), c = std::tanh(-0.5f - b);
  expect_close(y[0], floats({3, 1, 1, 1}, {a, b, c}));
  expect_close(y[1], floats({1, 1, 1}, {c}));
}

TEST(RNN, reads_each_sequence_backwards_from_its_own_end) {
  ModelBuilder m = one_number("RNN", 3, 2, {1}, {1}, {"", "lengths"},
                              {{"direction", "reverse"},
                               {"activations", std::vector<std::string>{"Affine"}},
                               {"activation_alpha", std::vector<float>{2}},
                               {"activation_beta", std::vector<float>{1}}});
  m.input("lengths", {2}, Type::INT32);
  const TensorData lengths = ir::tensor_of<int32_t>(DType::int_(32), {2}, {3, 1});
  const auto y = m.run({floats({3, 2, 1}, {1, 10, 2, 20, 3, 30}), lengths});
  // h = 2 (x + h) + 1, the first sequence from 3 to 1, of the second only its first element.
  expect_close(y[0], floats({3, 1, 2, 1}, {2 * (1 + 19.0f) + 1, 21, 2 * (2 + 7.0f) + 1, 0, 7, 0}));
  expect_close(y[1], floats({1, 2, 1}, {41, 21}));
}

TEST(GRU, resets_before_or_after_its_product) {
  const auto sigmoid = [](float x) { return 1 / (1 + std::exp(-x)); };
  for (const int linear : {0, 1}) {
    ModelBuilder m =
        one_number("GRU", 1, 1, {1, 2, 3}, {0.5f, -1, 2}, {"b", "", "first"}, {{"linear_before_reset", linear}});
    m.weight("b", {1, 6}, {0, 0, 0.25f, 0, 0, 0.75f}).weight("first", {1, 1, 1}, {0.5f});
    const float h = 0.5f, z = sigmoid(1 + 0.5f * h), r = sigmoid(2 - h);
    const float n = std::tanh(3 + 0.25f + (linear ? r * (2 * h + 0.75f) : 2 * r * h + 0.75f));
    expect_close(m.run({floats({1, 1, 1}, {1})})[1], floats({1, 1, 1}, {(1 - z) * n + z * h}));
  }
}

TEST(LSTM, looks_at_its_cell_through_peepholes) {
  const auto sigmoid = [](float x) { return 1 / (1 + std::exp(-x)); };
  for (const int couples : {0, 1}) {
    ModelBuilder m =
        one_number("LSTM", 1, 1, {1, 2, 3, 4}, {0, 0, 0, 0}, {"", "", "", "cell", "p"}, {{"input_forget", couples}});
    m.weight("cell", {1, 1, 1}, {0.5f}).weight("p", {1, 3}, {-1, 1, -2});
    const float i = sigmoid(0.1f - 0.5f), f = couples ? 1 - i : sigmoid(0.3f - 1);
    const float c = f * 0.5f + i * std::tanh(0.4f), o = sigmoid(0.2f + c);
    expect_close(m.run({floats({1, 1, 1}, {0.1f})})[1], floats({1, 1, 1}, {o * std::tanh(c)}));
  }
}

TEST(LSTM, takes_batches_first_where_the_layout_says_so) {
  ModelBuilder m(14);
  m.input("x", {"batch", "steps", 2}).weight("w", {2, 12, 2}, std::vector<float>(48, 0.5f));
  m.weight("r", {2, 12, 3}, std::vector<float>(72, 0.25f));
  m.node("LSTM", {"x", "w", "r"}, {"y", "h", "c"}, {{"hidden_size", 3}, {"layout", 1}, {"direction", "bidirectional"}});
  m.output("y").output("h").output("c");
  const auto y = m.run({random_floats({4, 5, 2}, 3)});
  EXPECT_EQ(y[0]->shape, (std::vector<int64_t>{4, 5, 2, 3}));
  EXPECT_EQ(y[1]->shape, (std::vector<int64_t>{4, 2, 3}));
  EXPECT_EQ(y[2]->shape, (std::vector<int64_t>{4, 2, 3}));
}

TEST(recurrent, says_what_does_not_fit) {
  const auto refusal = [](const std::vector<Attribute>& attributes, const std::vector<float>& r = {1}) {
    ModelBuilder m(14);
    m.input("x", {3, 1, 1}).weight("w", {1, 1, 1}, {1}).weight("r", {1, static_cast<int64_t>(r.size()), 1}, r);
    return m.node("RNN", {"x", "w", "r"}, {"y"}, attributes).output("y").refusal();
  };
  const std::vector<std::string> unknown{"Swish"}, two{"Tanh", "Tanh"}, affine{"Affine"};
  EXPECT_NE(refusal({{"activations", unknown}}).find("the activation 'Swish' is not one of a recurrent cell"),
            std::string::npos);
  EXPECT_NE(refusal({{"activations", two}}).find("has 2 names, but 1 are needed"), std::string::npos);
  EXPECT_NE(refusal({{"activations", affine}}).find("needs a number in the attribute 'activation_alpha'"),
            std::string::npos);
  EXPECT_NE(refusal({{"clip", -1.0f}}).find("the attribute 'clip' is negative"), std::string::npos);
  EXPECT_NE(refusal({{"hidden_size", 2}}).find("the weight of the input is [1, 1, 1], but [1, 2, 1] is needed"),
            std::string::npos);
  EXPECT_NE(refusal({}, {1, 1}).find("the weight of the recurrence is [1, 2, 1], but [1, 1, 1] is needed"),
            std::string::npos);
}

}  // namespace
}  // namespace lathe::onnx
