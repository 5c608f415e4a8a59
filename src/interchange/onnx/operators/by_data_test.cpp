// Results whose size the values decide.
#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary

TEST(NonZero, counts_nan_and_not_the_negative_zero) {
  ModelBuilder m(13);
  m.input("x", {2, 3}).node("NonZero", {"x"}, {"y"}).output("y");
  const auto y = m.run({floats({2, 3}, {0, std::nanf(""), -0.0f, 2, 0, -1})});
  expect_longs(y[0], {2, 3}, {0, 1, 1, 1, 0, 2});
}

TEST(NonZero, of_a_scalar_has_no_coordinates) {
  ModelBuilder m(13);
  m.input("x", {}).node("NonZero", {"x"}, {"y"}).output("y");
  EXPECT_EQ(m.run({floats({}, {3})})[0]->shape, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(m.run({floats({}, {0})})[0]->shape, (std::vector<int64_t>{0, 0}));
}

TEST(Compress, leaves_out_what_a_short_condition_does_not_reach) {
  ModelBuilder m(11);
  m.input("x", {2, 3}).input("keep", {"n"}, Type::BOOL);
  m.node("Compress", {"x", "keep"}, {"y"}, {{"axis", 1}}).node("Compress", {"x", "keep"}, {"flat"});
  m.output("y").output("flat");
  const auto y = m.run({floats({2, 3}, {1, 2, 3, 4, 5, 6}), bools({2}, {0, 1})});
  expect_floats(y[0], {2, 1}, {2, 5});
  expect_floats(y[1], {1}, {2});
}

TEST(Unique, sorts_or_keeps_the_order_of_first_meeting) {
  for (const int sorted : {1, 0}) {
    ModelBuilder m(11);
    m.input("x", {6}).node("Unique", {"x"}, {"y", "first", "inverse", "counts"}, {{"sorted", sorted}});
    m.output("y").output("first").output("inverse").output("counts");
    const auto y = m.run({floats({6}, {2, 1, 1, 3, 4, 3})});
    expect_floats(y[0], {4}, sorted ? std::vector<float>{1, 2, 3, 4} : std::vector<float>{2, 1, 3, 4});
    expect_longs(y[1], {4}, sorted ? std::vector<int64_t>{1, 0, 3, 4} : std::vector<int64_t>{0, 1, 3, 4});
    expect_longs(y[2], {6}, sorted ? std::vector<int64_t>{1, 0, 0, 2, 3, 2} : std::vector<int64_t>{0, 1, 1, 2, 3, 2});
    expect_longs(y[3], {4}, sorted ? std::vector<int64_t>{2, 1, 2, 1} : std::vector<int64_t>{1, 2, 2, 1});
  }
}

TEST(Unique, takes_nan_for_equal_to_itself_and_the_largest) {
  ModelBuilder m(11);
  m.input("x", {4}).node("Unique", {"x"}, {"", "first", "", "counts"}).output("first").output("counts");
  const float nan = std::nanf("");
  const auto y = m.run({floats({4}, {nan, 5, nan, -1})});
  expect_longs(y[0], {3}, {3, 1, 0});
  expect_longs(y[1], {3}, {1, 1, 2});
}

TEST(Unique, compares_parts_along_an_axis) {
  ModelBuilder m(11);
  m.input("x", {2, 3}).node("Unique", {"x"}, {"y", "first"}, {{"axis", 1}}).output("y").output("first");
  const auto y = m.run({floats({2, 3}, {1, 0, 1, 2, 5, 2})});
  expect_floats(y[0], {2, 2}, {0, 1, 5, 2});
  expect_longs(y[1], {2}, {1, 0});
}

TEST(NonMaxSuppression, takes_the_best_and_leaves_out_what_overlaps) {
  ModelBuilder m(11);
  m.input("boxes", {1, 4, 4}).input("scores", {1, 1, 4}).integers("most", {1}, {3}).weight("iou", {1}, {0.5f});
  m.weight("least", {1}, {0.2f});
  m.node("NonMaxSuppression", {"boxes", "scores", "most", "iou", "least"}, {"y"}).output("y");
  const TensorData boxes = floats({1, 4, 4}, {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 3, 3, 2, 2, 5, 5, 6, 6});
  expect_longs(m.run({boxes, floats({1, 1, 4}, {0.7f, 0.9f, 0.5f, 0.1f})})[0], {2, 3}, {0, 0, 1, 0, 0, 2});
}

TEST(NonMaxSuppression, without_a_count_takes_nothing) {
  ModelBuilder m(11);
  m.input("boxes", {1, 2, 4}).input("scores", {1, 1, 2});
  m.node("NonMaxSuppression", {"boxes", "scores"}, {"y"}).output("y");
  const TensorData boxes = floats({1, 2, 4}, {0, 0, 1, 1, 2, 2, 3, 3});
  EXPECT_EQ(m.run({boxes, floats({1, 1, 2}, {1, 2})})[0]->shape, (std::vector<int64_t>{0, 3}));
}

TEST(by_data, says_what_does_not_fit) {
  ModelBuilder condition(11);
  condition.input("x", {2, 3}).input("keep", {1, 2}, Type::BOOL).node("Compress", {"x", "keep"}, {"y"}).output("y");
  EXPECT_NE(condition.refusal().find("the condition has 2 dimensions, but 1 is needed"), std::string::npos);
  ModelBuilder boxes(11);
  boxes.input("boxes", {2, 4}).input("scores", {1, 1, 2});
  boxes.node("NonMaxSuppression", {"boxes", "scores"}, {"y"}).output("y");
  EXPECT_NE(boxes.refusal().find("the boxes have 2 dimensions and the scores 3, but both need 3"), std::string::npos);
}

}  // namespace
}  // namespace lathe::onnx
