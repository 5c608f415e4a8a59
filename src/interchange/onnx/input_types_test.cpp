#include "interchange/onnx/input_types.h"

#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT

TEST(input_types, names_the_input_and_what_fits) {
  ModelBuilder m;
  m.input("x", {2, 3}).input("i", {2, 3}).node("GatherElements", {"x", "i"}, {"y"}).output("y");
  const std::string text = m.refusal();
  EXPECT_NE(text.find("onnx-wrong-node"), std::string::npos) << text;
  EXPECT_NE(text.find("the input 1 ('indices') is float32, but int32 or int64 fits"), std::string::npos) << text;
  EXPECT_NE(text.find("'i', the graph's input, is float32[2, 3]"), std::string::npos) << text;
}

TEST(input_types, are_one_where_they_share_a_parameter) {
  ModelBuilder m;
  m.input("x", {2, 3}).input("z", {2, 3}, Type::DOUBLE).node("PRelu", {"x", "z"}, {"y"}).output("y");
  const std::string text = m.refusal();
  EXPECT_NE(text.find("the input 1 ('slope') is float64, but the input 0 is float32"), std::string::npos) << text;
}

TEST(input_types, of_any_release_are_taken) {
  ModelBuilder m(7);  // int8 came with opset 14
  m.input("x", {2}, Type::INT8).input("z", {2}, Type::INT8).node("Add", {"x", "z"}, {"y"}).output("y");
  EXPECT_TRUE(m.import().ok());
}

TEST(input_types, of_a_variadic_operator_hold_for_all_that_follow) {
  ModelBuilder m;
  m.input("x", {2}).input("z", {2}).input("w", {2}, Type::DOUBLE);
  const std::string text = m.node("Concat", {"x", "z", "w"}, {"y"}, {{"axis", 0}}).output("y").refusal();
  EXPECT_NE(text.find("the input 2 ('inputs') is float64"), std::string::npos) << text;
}

}  // namespace
}  // namespace lathe::onnx
