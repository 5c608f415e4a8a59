// Arithmetic, activations, comparisons and conversions: their forms by opset, against plain formulas.
#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary

// One node on float inputs x0, x1, … .
TensorData run_one(int opset, const std::string& type, const std::vector<TensorData>& inputs,
                   const std::vector<Attribute>& attributes = {}) {
  ModelBuilder m(opset);
  std::vector<std::string> names;
  for (const TensorData& input : inputs) {
    names.push_back("x" + std::to_string(names.size()));
    m.input(names.back(), std::vector<Dim>(input->shape.begin(), input->shape.end()), tensor_proto(input).data_type());
  }
  return m.node(type, names, {"y"}, attributes).output("y").run(inputs).at(0);
}

TensorData mapped(const TensorData& x, const std::function<double(double)>& f) {
  std::vector<float> values;
  for (int64_t i = 0; i < x->elements(); ++i) values.push_back(static_cast<float>(f(ir::float_at(*x, i))));
  return floats(x->shape, values);
}

TEST(Elementwise, unary_operators) {
  const TensorData x = random_floats({3, 5}, 1);
  const std::vector<std::tuple<std::string, std::function<double(double)>>> operators = {
      {"Neg", [](double v) { return -v; }},
      {"Abs", [](double v) { return std::fabs(v); }},
      {"Exp", [](double v) { return std::exp(v); }},
      {"Sin", [](double v) { return std::sin(v); }},
      {"Cos", [](double v) { return std::cos(v); }},
      {"Tanh", [](double v) { return std::tanh(v); }},
      {"Erf", [](double v) { return std::erf(v); }},
      {"Floor", [](double v) { return std::floor(v); }},
      {"Ceil", [](double v) { return std::ceil(v); }},
      {"Round", [](double v) { return std::nearbyint(v); }},
      {"Sign", [](double v) { return (v > 0) - (v < 0); }},
      {"Reciprocal", [](double v) { return 1 / v; }},
      {"Sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); }},
      {"Relu", [](double v) { return std::max(v, 0.0); }},
      {"LeakyRelu", [](double v) { return v < 0 ? 0.01 * v : v; }},
      {"Elu", [](double v) { return v < 0 ? std::expm1(v) : v; }},
      {"Celu", [](double v) { return std::max(v, 0.0) + std::min(0.0, std::expm1(v)); }},
      {"Selu", [](double v) { return 1.0507009873554805 * (v > 0 ? v : 1.6732632423543772 * std::expm1(v)); }},
      {"Softplus", [](double v) { return std::log1p(std::exp(v)); }},
      {"Softsign", [](double v) { return v / (1 + std::fabs(v)); }},
      {"HardSigmoid", [](double v) { return std::clamp(0.2 * v + 0.5, 0.0, 1.0); }},
      {"HardSwish", [](double v) { return v * std::clamp(v / 6 + 0.5, 0.0, 1.0); }},
      {"Gelu", [](double v) { return v / 2 * (1 + std::erf(v / std::sqrt(2))); }},
      {"Mish", [](double v) { return v * std::tanh(std::log1p(std::exp(v))); }},
      {"ThresholdedRelu", [](double v) { return v > 1 ? v : 0; }},
  };
  for (const auto& [type, f] : operators) {
    SCOPED_TRACE(type);
    expect_close(run_one(22, type, {x}), mapped(x, f));
  }
  const TensorData positive = mapped(x, [](double v) { return std::fabs(v) + 0.1; });
  expect_close(run_one(13, "Sqrt", {positive}), mapped(positive, [](double v) { return std::sqrt(v); }));
  expect_close(run_one(13, "Log", {positive}), mapped(positive, [](double v) { return std::log(v); }));
}

TEST(Elementwise, activations_with_attributes) {
  const TensorData x = random_floats({4, 3}, 2);
  const auto expect = [&](const std::string& type, const std::vector<Attribute>& a,
                          const std::function<double(double)>& f,
                          int opset = 24) { expect_close(run_one(opset, type, {x}, a), mapped(x, f)); };
  expect("LeakyRelu", {{"alpha", 0.25f}}, [](double v) { return v < 0 ? 0.25 * v : v; });
  expect("Elu", {{"alpha", 2.0f}}, [](double v) { return v < 0 ? 2 * std::expm1(v) : v; });
  expect("Celu", {{"alpha", 2.0f}}, [](double v) { return std::max(v, 0.0) + std::min(0.0, 2 * std::expm1(v / 2)); });
  expect("Selu", {{"alpha", 2.0f}, {"gamma", 3.0f}}, [](double v) { return 3 * (v > 0 ? v : 2 * std::expm1(v)); });
  expect("HardSigmoid", {{"alpha", 0.5f}, {"beta", 0.25f}},
         [](double v) { return std::clamp(0.5 * v + 0.25, 0.0, 1.0); });
  expect("Gelu", {{"approximate", "tanh"}},
         [](double v) { return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))); });
  expect("Swish", {{"alpha", 2.0f}}, [](double v) { return v / (1 + std::exp(-2 * v)); });
}

TEST(Elementwise, binary_operators_broadcast) {
  const TensorData a = random_floats({2, 3, 4}, 3),
                   b = mapped(random_floats({3, 1}, 4), [](double v) { return std::fabs(v) + 0.5; });
  const auto at = [&](int64_t i) { return ir::float_at(*b, i / 4 % 3); };
  const std::vector<std::tuple<std::string, std::function<double(double, double)>>> operators = {
      {"Add", std::plus<>()}, {"Sub", std::minus<>()}, {"Mul", std::multiplies<>()}, {"Div", std::divides<>()}};
  for (const auto& [type, f] : operators) {
    std::vector<float> values;
    for (int64_t i = 0; i < 24; ++i) values.push_back(static_cast<float>(f(ir::float_at(*a, i), at(i))));
    expect_floats(run_one(14, type, {a, b}), {2, 3, 4}, values);
  }
}

// Before opset 7 the second operand's dimensions begin at `axis`.
TEST(Elementwise, the_old_axis_attribute_aligns_from_there) {
  const TensorData a = floats({2, 3}, {0, 0, 0, 0, 0, 0}), b = floats({2}, {1, 2});
  expect_floats(run_one(6, "Add", {a, b}, {{"axis", 0}, {"broadcast", 1}}), {2, 3}, {1, 1, 1, 2, 2, 2});
  expect_floats(run_one(6, "Add", {a, floats({3}, {1, 2, 3})}, {{"broadcast", 1}}), {2, 3}, {1, 2, 3, 1, 2, 3});
}

TEST(Elementwise, integers_divide_truncating_and_take_remainders) {
  const TensorData a = longs({4}, {7, -7, 7, -7}), b = longs({4}, {3, 3, -3, -3});
  expect_longs(run_one(14, "Div", {a, b}), {4}, {2, -2, -2, 2});
  expect_longs(run_one(13, "Mod", {a, b}), {4}, {1, 2, -2, -1});
  expect_longs(run_one(13, "Mod", {a, b}, {{"fmod", 1}}), {4}, {1, -1, 1, -1});
  expect_floats(run_one(13, "Mod", {floats({2}, {5.5f, -5.5f}), floats({1}, {2})}, {{"fmod", 1}}), {2}, {1.5f, -1.5f});
}

TEST(Elementwise, powers_have_the_type_of_the_base) {
  expect_floats(run_one(15, "Pow", {floats({3}, {1, 2, 3}), longs({3}, {2, 3, 1})}), {3}, {1, 8, 3});
  expect_longs(run_one(15, "Pow", {longs({3}, {1, 2, 3}), floats({3}, {2, 3, 0.5f})}), {3}, {1, 8, 1});
}

TEST(Elementwise, any_number_of_operands) {
  const TensorData a = floats({2, 2}, {1, 8, 3, -4}), b = floats({2}, {2, 2}), c = floats({1, 1}, {3});
  expect_floats(run_one(13, "Max", {a, b, c}), {2, 2}, {3, 8, 3, 3});
  expect_floats(run_one(13, "Min", {a, b, c}), {2, 2}, {1, 2, 2, -4});
  expect_floats(run_one(13, "Sum", {a, b, c}), {2, 2}, {6, 13, 8, 1});
  expect_floats(run_one(13, "Mean", {a, b, c}), {2, 2}, {2, 13 / 3.0f, 8 / 3.0f, 1 / 3.0f});
  expect_floats(run_one(13, "Max", {a}), {2, 2}, {1, 8, 3, -4});
}

TEST(Elementwise, clip_takes_attributes_and_then_inputs) {
  const TensorData x = floats({4}, {-5, 0, 2, 9});
  expect_floats(run_one(6, "Clip", {x}, {{"min", -1.0f}, {"max", 3.0f}}), {4}, {-1, 0, 2, 3});
  expect_floats(run_one(13, "Clip", {x, floats({}, {-1}), floats({}, {3})}), {4}, {-1, 0, 2, 3});
  expect_floats(run_one(13, "Clip", {x, floats({1}, {1})}), {4}, {1, 1, 2, 9});
  expect_floats(run_one(13, "Clip", {x}), {4}, {-5, 0, 2, 9});
  ModelBuilder m;
  m.input("x", {4}).weight("top", {}, {1}).node("Clip", {"x", "", "top"}, {"y"}).output("y");
  expect_floats(m.run({x}).at(0), {4}, {-5, 0, 1, 1});
}

TEST(Elementwise, prelu_slopes_broadcast_to_the_input) {
  const TensorData x = floats({1, 2, 2}, {-1, 2, -3, 4});
  expect_floats(run_one(16, "PRelu", {x, floats({2, 1}, {10, 100})}), {1, 2, 2}, {-10, 2, -300, 4});
  expect_floats(run_one(6, "PRelu", {x, floats({2}, {10, 100})}), {1, 2, 2}, {-10, 2, -300, 4});
  expect_floats(run_one(6, "PRelu", {x, floats({1}, {10})}), {1, 2, 2}, {-10, 2, -30, 4});
}

TEST(Elementwise, comparisons_logic_and_choice) {
  const TensorData a = floats({3}, {1, 2, 3}), b = floats({3}, {2, 2, 2});
  expect_close(run_one(13, "Less", {a, b}), bools({3}, {1, 0, 0}));
  expect_close(run_one(16, "LessOrEqual", {a, b}), bools({3}, {1, 1, 0}));
  expect_close(run_one(13, "Greater", {a, b}), bools({3}, {0, 0, 1}));
  expect_close(run_one(16, "GreaterOrEqual", {a, b}), bools({3}, {0, 1, 1}));
  expect_close(run_one(13, "Equal", {a, b}), bools({3}, {0, 1, 0}));
  const TensorData p = bools({4}, {0, 0, 1, 1}), q = bools({4}, {0, 1, 0, 1});
  expect_close(run_one(7, "And", {p, q}), bools({4}, {0, 0, 0, 1}));
  expect_close(run_one(7, "Or", {p, q}), bools({4}, {0, 1, 1, 1}));
  expect_close(run_one(7, "Xor", {p, q}), bools({4}, {0, 1, 1, 0}));
  expect_close(run_one(7, "Not", {p}), bools({4}, {1, 1, 0, 0}));
  expect_floats(run_one(16, "Where", {bools({3}, {1, 0, 1}), a, floats({1}, {9})}), {3}, {1, 9, 3});
}

TEST(Elementwise, infinities_and_nan_are_found) {
  const float inf = std::numeric_limits<float>::infinity();
  const TensorData x = floats({4}, {inf, -inf, NAN, 1});
  expect_close(run_one(20, "IsInf", {x}), bools({4}, {1, 1, 0, 0}));
  expect_close(run_one(20, "IsInf", {x}, {{"detect_negative", 0}}), bools({4}, {1, 0, 0, 0}));
  expect_close(run_one(20, "IsInf", {x}, {{"detect_positive", 0}}), bools({4}, {0, 1, 0, 0}));
  expect_close(run_one(20, "IsNaN", {x}), bools({4}, {0, 0, 1, 0}));
}

TEST(Elementwise, casts) {
  expect_longs(run_one(13, "Cast", {floats({3}, {1.9f, -1.9f, 0})}, {{"to", 7}}), {3}, {1, -1, 0});
  expect_close(run_one(13, "Cast", {floats({2}, {0.5f, 0})}, {{"to", 9}}), bools({2}, {1, 0}));
  expect_floats(run_one(19, "CastLike", {longs({2}, {3, 4}), floats({1}, {0})}), {2}, {3, 4});
  ModelBuilder complex(21);
  complex.input("x", {2}).node("Cast", {"x"}, {"y"}, {{"to", 14}}).output("y");
  EXPECT_NE(complex.refusal().find("the element type COMPLEX64, which Lathe does not compile"), std::string::npos);
  ModelBuilder unknown(21);
  unknown.input("x", {2}).node("Cast", {"x"}, {"y"}, {{"to", 99}}).output("y");
  EXPECT_NE(unknown.refusal().find("99"), std::string::npos);
  ModelBuilder missing(21);
  missing.input("x", {2}).node("Cast", {"x"}, {"y"}).output("y");
  EXPECT_NE(missing.refusal().find("the attribute 'to' is missing"), std::string::npos);
}

}  // namespace
}  // namespace lathe::onnx
