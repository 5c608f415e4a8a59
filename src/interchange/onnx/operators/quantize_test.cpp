// Narrow types and what is quantized to them: values worked out by hand.
#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary

using Values = std::vector<double>;

Values values_of(const TensorData& x) {
  Values values;
  for (int64_t i = 0; i < x->elements(); ++i) values.push_back(ir::float_at(*x, i));
  return values;
}

TensorData bytes_of(DType dtype, std::vector<int64_t> dims, const std::vector<int>& values) {
  std::string bytes;
  for (const int value : values) bytes += static_cast<char>(value);
  return ir::tensor_data(dtype, std::move(dims), bytes);
}

Values cast_to(int type, const std::vector<float>& values, const std::vector<Attribute>& more = {}) {
  const auto count = static_cast<int64_t>(values.size());
  ModelBuilder m(25);
  std::vector<Attribute> attributes{{"to", type}};
  attributes.insert(attributes.end(), more.begin(), more.end());
  m.input("x", {count}).node("Cast", {"x"}, {"y"}, attributes).output("y");
  return values_of(m.run({floats({count}, values)})[0]);
}

constexpr float infinite = std::numeric_limits<float>::infinity();

TEST(Cast, saturates_to_eight_bits_unless_told_otherwise) {
  EXPECT_EQ(cast_to(Type::FLOAT8E4M3FN, {1000, -infinite, 17, 0.3f}), (Values{448, -448, 16, 0.3125}));
  EXPECT_EQ(cast_to(Type::FLOAT8E5M2FNUZ, {1e6f, -1e6f}), (Values{57344, -57344}));
  EXPECT_EQ(cast_to(Type::FLOAT8E5M2, {1e6f, -infinite}, {{"saturate", 0}}), (Values{infinite, -infinite}));
  ModelBuilder own(25);
  own.input("x", {2}, Type::FLOAT8E5M2).node("Cast", {"x"}, {"y"}, {{"to", Type::FLOAT8E5M2}}).output("y");
  const TensorData infinities = bytes_of(*DType::parse("float8_e5m2"), {2}, {0x7c, 0xfc});
  EXPECT_EQ(values_of(own.run({infinities})[0]), (Values{57344, -57344}));
  EXPECT_TRUE(std::isnan(cast_to(Type::FLOAT8E4M3FNUZ, {1000}, {{"saturate", 0}})[0]));
  EXPECT_TRUE(std::isnan(cast_to(Type::FLOAT8E4M3FN, {NAN})[0]));
  EXPECT_EQ(cast_to(Type::FLOAT4E2M1, {100, -0.2f, 2.5f, 5}), (Values{6, 0, 2, 4}));
  EXPECT_EQ(cast_to(Type::INT4, {7.9f, -8, 3}), (Values{7, -8, 3}));
}

// 2^-127 is the least power of two of the type, and has no exponent of its own in float32.
TEST(Cast, rounds_to_powers_of_two_as_told) {
  const float least = std::ldexp(1.0f, -127);
  const std::vector<float> x{1, 1.25f, 1.5f, 3.9f, 0, least, 1.25f * least, 1.5f * least, std::ldexp(1.9f, 127)};
  const double step = static_cast<double>(least), most = std::ldexp(1.0, 127);
  EXPECT_EQ(cast_to(Type::FLOAT8E8M0, x), (Values{1, 2, 2, 4, step, step, 2 * step, 2 * step, most}));
  EXPECT_EQ(cast_to(Type::FLOAT8E8M0, x, {{"round_mode", "down"}}), (Values{1, 1, 1, 2, step, step, step, step, most}));
  EXPECT_EQ(cast_to(Type::FLOAT8E8M0, x, {{"round_mode", "nearest"}}),
            (Values{1, 1, 2, 4, step, step, step, 2 * step, most}));
  EXPECT_EQ(cast_to(Type::FLOAT8E8M0, {infinite}), (Values{most}));
  for (const float beyond : {0.0f, infinite, NAN, std::ldexp(1.9f, 127)})
    EXPECT_TRUE(std::isnan(cast_to(Type::FLOAT8E8M0, {beyond}, {{"saturate", 0}})[0])) << beyond;
  ModelBuilder m(25);
  m.input("x", {1}).node("Cast", {"x"}, {"y"}, {{"to", Type::FLOAT8E8M0}, {"round_mode", "odd"}}).output("y");
  EXPECT_NE(m.refusal().find("the attribute 'round_mode' is 'odd'"), std::string::npos);
}

TEST(BitCast, keeps_the_bits) {
  ModelBuilder m(26);
  m.input("x", {2}).node("BitCast", {"x"}, {"y"}, {{"to", Type::INT32}}).output("y");
  EXPECT_EQ(values_of(m.run({floats({2}, {1, -2})})[0]), (Values{0x3f800000, -0x40000000}));
  ModelBuilder packed(26);
  packed.input("x", {3}, Type::INT4).node("BitCast", {"x"}, {"y"}, {{"to", Type::FLOAT4E2M1}}).output("y");
  EXPECT_EQ(values_of(packed.run({bytes_of(DType::int_(4), {3}, {0x71, 0x0a})})[0]), (Values{0.5, 6, -1}));
  ModelBuilder truth(26);
  truth.input("x", {3}, Type::UINT8).node("BitCast", {"x"}, {"y"}, {{"to", Type::BOOL}}).output("y");
  EXPECT_EQ(values_of(truth.run({bytes_of(DType::uint(8), {3}, {1, 0, 1})})[0]), (Values{1, 0, 1}));
  ModelBuilder wider(26);
  wider.input("x", {2}).node("BitCast", {"x"}, {"y"}, {{"to", Type::INT64}}).output("y");
  EXPECT_NE(wider.refusal().find("BitCast of float32 to int64, which has another width"), std::string::npos);
}

TEST(QuantizeLinear, gives_narrow_types) {
  const auto quantized = [](int type, const std::vector<float>& x, const std::vector<Attribute>& more = {}) {
    const auto count = static_cast<int64_t>(x.size());
    ModelBuilder m(25);
    std::vector<Attribute> attributes{{"output_dtype", type}};
    attributes.insert(attributes.end(), more.begin(), more.end());
    m.input("x", {count})
        .weight("scale", {}, {2})
        .node("QuantizeLinear", {"x", "scale"}, {"y"}, attributes)
        .output("y");
    return values_of(m.run({floats({count}, x)})[0]);
  };
  EXPECT_EQ(quantized(Type::INT4, {1, 3, -100, 100, 5}), (Values{0, 2, -8, 7, 2}));
  EXPECT_EQ(quantized(Type::UINT2, {-4, 2, 4, 100}), (Values{0, 1, 2, 3}));
  EXPECT_EQ(quantized(Type::FLOAT8E4M3FN, {2000, 3}), (Values{448, 1.5}));
  EXPECT_TRUE(std::isnan(quantized(Type::FLOAT8E4M3FN, {2000}, {{"saturate", 0}})[0]));
  EXPECT_EQ(quantized(Type::FLOAT4E2M1, {2000, 3}), (Values{6, 1.5}));
  // 2050.5 / 2 is 1025.25; bfloat16 has 8 digits, so that x is 2048 in it.
  EXPECT_EQ(quantized(Type::INT16, {2050.5f}), (Values{1025}));
  EXPECT_EQ(quantized(Type::INT16, {2050.5f}, {{"precision", Type::BFLOAT16}}), (Values{1024}));
}

TEST(QuantizeLinear, refuses_types_that_contradict) {
  ModelBuilder m(21);
  m.input("x", {2}).input("zero", {}, Type::INT8).weight("scale", {}, {2});
  m.node("QuantizeLinear", {"x", "scale", "zero"}, {"y"}, {{"output_dtype", Type::UINT8}}).output("y");
  EXPECT_NE(m.refusal().find("says uint8, but the zero point is int8"), std::string::npos);
  ModelBuilder in_integers(23);
  in_integers.input("x", {2}).weight("scale", {}, {2});
  in_integers.node("QuantizeLinear", {"x", "scale"}, {"y"}, {{"precision", Type::INT32}}).output("y");
  EXPECT_NE(in_integers.refusal().find("says int32, in which nothing is divided"), std::string::npos);
  ModelBuilder powers(25);
  powers.input("x", {2}, Type::INT8).input("scale", {}, Type::FLOAT8E8M0);
  powers.node("DequantizeLinear", {"x", "scale"}, {"y"}).output("y");
  EXPECT_NE(powers.refusal().find("a scale of float8_e8m0fnu"), std::string::npos);
}

TEST(DequantizeLinear, takes_packed_blocks_and_powers_of_two) {
  ModelBuilder m(25);
  m.input("x", {5}, Type::INT4).input("scale", {3}, Type::FLOAT8E8M0);
  m.node("DequantizeLinear", {"x", "scale"}, {"y"}, {{"axis", 0}, {"block_size", 2}, {"output_dtype", Type::FLOAT16}})
      .output("y");
  const TensorData x = bytes_of(DType::int_(4), {5}, {0x21, 0xf3, 0x08});
  const TensorData scale = bytes_of(*DType::parse("float8_e8m0fnu"), {3}, {127, 128, 126});
  EXPECT_EQ(values_of(m.run({x, scale})[0]), (Values{1, 2, 6, -2, -4}));
}

TEST(ConvInteger, pads_with_the_zero_point) {
  ModelBuilder m(10);
  m.input("x", {1, 1, 3}, Type::UINT8).input("w", {2, 1, 2}, Type::INT8).input("x_zero", {}, Type::UINT8);
  m.input("w_zero", {2}, Type::INT8);
  m.node("ConvInteger", {"x", "w", "x_zero", "w_zero"}, {"y"}, {{"pads", std::vector<int64_t>{1, 0}}}).output("y");
  const auto y =
      m.run({bytes_of(DType::uint(8), {1, 1, 3}, {12, 13, 9}), bytes_of(DType::int_(8), {2, 1, 2}, {1, 2, 3, 5}),
             bytes_of(DType::uint(8), {}, {10}), bytes_of(DType::int_(8), {2}, {0, 2})});
  // x: 2 3 -1; kernels 1 2 and 1 3
  EXPECT_EQ(y[0]->dtype, DType::int_(32));
  EXPECT_EQ(values_of(y[0]), (Values{4, 8, 1, 6, 11, 0}));
}

TEST(QLinearConv, scales_each_channel) {
  ModelBuilder m(10);
  const std::vector<std::string> names{"x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"};
  m.input("x", {1, 1, 2}, Type::UINT8).input("xz", {}, Type::UINT8).input("w", {2, 1, 1}, Type::INT8);
  m.input("wz", {}, Type::INT8).input("yz", {}, Type::INT8).input("b", {2}, Type::INT32);
  m.weight("xs", {}, {0.5f}).weight("ws", {2}, {1, 0.25f}).weight("ys", {}, {0.5f});
  m.node("QLinearConv", names, {"y"}).output("y");
  const auto y = m.run({bytes_of(DType::uint(8), {1, 1, 2}, {3, 5}), bytes_of(DType::uint(8), {}, {1}),
                        bytes_of(DType::int_(8), {2, 1, 1}, {2, -4}), bytes_of(DType::int_(8), {}, {0}),
                        bytes_of(DType::int_(8), {}, {-3}), ir::tensor_of<int32_t>(DType::int_(32), {2}, {10, 2})});
  // (2 4) * 2 + 10 = 14 18; (2 4) * -4 + 2 = -6 -14, a quarter of it to the nearest even: -2 (-1.5), -4 (-3.5)
  EXPECT_EQ(y[0]->dtype, DType::int_(8));
  EXPECT_EQ(values_of(y[0]), (Values{11, 15, -5, -7}));
}

TEST(MatMulInteger, takes_zero_points_of_rows_and_columns) {
  ModelBuilder m(10);
  m.input("a", {2, 1}, Type::UINT8).input("b", {1, 2}, Type::INT8).input("az", {2, 1}, Type::UINT8);
  m.input("bz", {2}, Type::INT8).node("MatMulInteger", {"a", "b", "az", "bz"}, {"y"}).output("y");
  const auto y = m.run({bytes_of(DType::uint(8), {2, 1}, {200, 3}), bytes_of(DType::int_(8), {1, 2}, {5, -7}),
                        bytes_of(DType::uint(8), {2, 1}, {190, 1}), bytes_of(DType::int_(8), {2}, {1, -4})});
  EXPECT_EQ(values_of(y[0]), (Values{40, -30, 8, -6}));
  ModelBuilder other(10);
  other.input("a", {2, 1}, Type::UINT8).input("b", {1, 2}, Type::INT8).input("az", {}, Type::INT8);
  other.node("MatMulInteger", {"a", "b", "az"}, {"y"}).output("y");
  EXPECT_NE(other.refusal().find("the input 2 ('a_zero_point') is int8, but the input 0 is uint8"), std::string::npos);
}

}  // namespace
}  // namespace lathe::onnx
