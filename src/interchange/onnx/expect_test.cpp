#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace expect_test {

using namespace testing;  // NOLINT: the subject's words

bool scans(const ModelBuilder& m) {
  const ir::IRModule module = m.import().value_or_throw();
  for (const auto& [name, function] : module.functions())
    if (name.find("find_element") != std::string::npos) return true;
  return false;
}

ModelBuilder gather(const std::vector<Dim>& data, const std::vector<Dim>& indices) {
  ModelBuilder m(17);
  m.input("x", data).input("at", indices, Type::INT64).node("Gather", {"x", "at"}, {"y"}).output("y");
  return m;
}

ModelBuilder gather_constant(const std::vector<Dim>& data, std::vector<int64_t> indices) {
  ModelBuilder m(17);
  m.input("x", data).integers("at", {static_cast<int64_t>(indices.size())}, indices);
  m.node("Gather", {"x", "at"}, {"y"}).output("y");
  return m;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(expect, a_run_names_the_element_and_the_operands) {
  for (const Dim& rows : {Dim(3), Dim("n")}) {
    const ModelBuilder m = gather({rows, 2}, {1, "k"});
    const TensorData x = random_floats({3, 2}, 1);
    EXPECT_EQ(failure(m, {x, longs({1, 3}, {2, -3, 0})}), "");
    EXPECT_EQ(failure(m, {x, longs({1, 0}, {})}), "");
    const std::string text = failure(m, {x, longs({1, 3}, {2, -4, 3})});
    EXPECT_TRUE(has(text, "'at' holds -4 at [0, 1], but indices into axis 0 of 'x' are in [-3, 3)")) << text;
    EXPECT_TRUE(has(text, "'x', the graph's input, is float32[3, 2]")) << text;
    EXPECT_TRUE(has(text, "'at', the graph's input, is int64[1, 3]")) << text;
  }
}

TEST(expect, constants_are_looked_over_when_compiling) {
  const std::string text = gather_constant({3, 2}, {0, 3, -3}).refusal();
  EXPECT_TRUE(has(text, "'at' holds 3 at [1], but indices into axis 0 of 'x' are in [-3, 3)")) << text;
  EXPECT_TRUE(has(gather_constant({3, 2}, {0, -4}).refusal(), "'at' holds -4 at [1]"));
  EXPECT_FALSE(scans(gather_constant({3, 2}, {0, 2, -3})));
}

TEST(expect, constants_into_an_open_axis_are_two_comparisons) {
  const ModelBuilder m = gather_constant({"n", 2}, {4, 0, -2});
  EXPECT_FALSE(scans(m));
  EXPECT_EQ(failure(m, {random_floats({5, 2}, 1)}), "");
  EXPECT_TRUE(has(failure(m, {random_floats({4, 2}, 1)}), "'at' holds 4 at [0]"));
}

TEST(expect, integers_are_not_divided_by_zero_and_floats_are) {
  for (const bool is_float : {false, true}) {
    ModelBuilder m(17);
    const int type = is_float ? Type::FLOAT : Type::INT64;
    m.input("a", {2}, type).input("b", {2}, type).node("Div", {"a", "b"}, {"y"}).output("y");
    EXPECT_EQ(scans(m), !is_float);
    if (is_float) continue;
    EXPECT_EQ(failure(m, {longs({2}, {7, 8}), longs({2}, {-1, 3})}), "");
    EXPECT_TRUE(has(failure(m, {longs({2}, {7, 8}), longs({2}, {1, 0})}), "'b' is 0 at [1]"));
  }
}

TEST(expect, a_divisor_that_is_an_extent_is_one_comparison) {
  ModelBuilder m(17);
  m.input("x", {"n"})
      .integers("six", {1}, {6})
      .node("Shape", {"x"}, {"s"})
      .node("Div", {"six", "s"}, {"y"})
      .output("y");
  EXPECT_FALSE(scans(m));
  EXPECT_EQ(failure(m, {random_floats({2}, 1)}), "");
  EXPECT_TRUE(has(failure(m, {random_floats({0}, 1)}), "'s' is 0 at [0]"));
}

TEST(expect, each_axis_is_one_and_is_named_once) {
  ModelBuilder m(18);
  m.input("x", {"n", 2}).input("axes", {2}, Type::INT64);
  m.node("ReduceSum", {"x", "axes"}, {"y"}).output("y");
  const TensorData x = random_floats({3, 2}, 1);
  EXPECT_EQ(failure(m, {x, longs({2}, {1, -2})}), "");
  EXPECT_TRUE(has(failure(m, {x, longs({2}, {0, 2})}), "'axes' holds 2 at [1], but there are axes in [-2, 2)"));
  EXPECT_TRUE(has(failure(m, {x, longs({2}, {1, -1})}), "'axes' holds -1 at [1], but one before it is the same axis"));
}

}  // namespace expect_test
}  // namespace lathe::onnx
