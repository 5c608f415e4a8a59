// Operators that read and write by indices, or go along an axis in order.
#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary

// One node over inputs x0, x1, … of the data's shapes.
std::vector<TensorData> run_node(int opset, const std::string& type, const std::vector<TensorData>& inputs,
                                 const std::vector<Attribute>& attributes = {}, size_t outputs = 1) {
  ModelBuilder m(opset);
  std::vector<std::string> names, made;
  for (const TensorData& x : inputs) {
    names.push_back("x" + std::to_string(names.size()));
    const int element = x->dtype == DType::float32() ? Type::FLOAT : x->dtype.is_bool() ? Type::BOOL : Type::INT64;
    m.input(names.back(), std::vector<Dim>(x->shape.begin(), x->shape.end()), element);
  }
  for (size_t i = 0; i < outputs; ++i) made.push_back("y" + std::to_string(i));
  m.node(type, names, made, attributes);
  for (const std::string& name : made) m.output(name);
  return m.run(inputs);
}

TEST(GatherElements, takes_along_an_axis_and_counts_from_the_end) {
  const TensorData x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  expect_floats(run_node(13, "GatherElements", {x, longs({2, 2}, {1, 2, -1, 0})}, {{"axis", 0}})[0], {2, 2},
                {3, 6, 5, 2});
  expect_floats(run_node(13, "GatherElements", {x, longs({3, 1}, {1, 0, -2})}, {{"axis", 1}})[0], {3, 1}, {2, 3, 5});
}

TEST(GatherElements, of_more_rows_than_there_are_is_refused) {
  ModelBuilder m(13);
  m.input("x", {3, 2}).input("i", {2, 5}, Type::INT64).node("GatherElements", {"x", "i"}, {"y"}).output("y");
  EXPECT_NE(m.refusal().find("the extent 2 must be 5"), std::string::npos) << m.refusal();
}

TEST(GatherND, of_points_of_rows_and_after_batches) {
  const TensorData x = floats({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  expect_floats(run_node(13, "GatherND", {x, longs({2, 3}, {0, 1, 0, 1, 0, -1})})[0], {2}, {2, 5});
  expect_floats(run_node(13, "GatherND", {x, longs({1, 1}, {1})})[0], {1, 2, 2}, {4, 5, 6, 7});
  expect_floats(run_node(13, "GatherND", {x, longs({2, 1}, {1, 0})}, {{"batch_dims", 1}})[0], {2, 2}, {2, 3, 4, 5});
}

TEST(ScatterElements, replaces_and_combines_in_order) {
  const TensorData x = floats({1, 4}, {1, 2, 3, 4});
  const auto scattered = [&](const char* reduction) {
    return run_node(18, "ScatterElements", {x, longs({1, 3}, {1, -1, 1}), floats({1, 3}, {5, 6, 7})},
                    {{"axis", 1}, {"reduction", reduction}})[0];
  };
  expect_floats(scattered("none"), {1, 4}, {1, 7, 3, 6});
  expect_floats(scattered("add"), {1, 4}, {1, 14, 3, 10});
  expect_floats(scattered("mul"), {1, 4}, {1, 70, 3, 24});
  expect_floats(scattered("max"), {1, 4}, {1, 7, 3, 6});
  expect_floats(scattered("min"), {1, 4}, {1, 2, 3, 4});
}

TEST(ScatterND, writes_rows_and_points) {
  const TensorData x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  expect_floats(run_node(18, "ScatterND", {x, longs({2, 1}, {2, 0}), floats({2, 2}, {9, 8, 7, 6})})[0], {3, 2},
                {7, 6, 3, 4, 9, 8});
  expect_floats(
      run_node(18, "ScatterND", {x, longs({2, 2}, {1, 1, 1, 1}), floats({2}, {10, 20})}, {{"reduction", "add"}})[0],
      {3, 2}, {1, 2, 3, 34, 5, 6});
}

TEST(TensorScatter, appends_to_a_cache_and_goes_round) {
  const TensorData cache = floats({2, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8}), update = floats({2, 2, 1}, {10, 20, 30, 40});
  expect_floats(run_node(24, "TensorScatter", {cache, update})[0], {2, 4, 1}, {10, 20, 3, 4, 30, 40, 7, 8});
  expect_floats(run_node(24, "TensorScatter", {cache, update, longs({2}, {2, 1})})[0], {2, 4, 1},
                {1, 2, 10, 20, 5, 30, 40, 8});
  expect_floats(
      run_node(24, "TensorScatter", {cache, update, longs({2}, {3, 5})}, {{"mode", "circular"}, {"axis", 1}})[0],
      {2, 4, 1}, {20, 2, 3, 10, 5, 30, 40, 8});
}

TEST(TensorScatter, along_the_batch_is_refused) {
  ModelBuilder m(24);
  m.input("x", {2, 3}).node("TensorScatter", {"x", "x"}, {"y"}, {{"axis", 0}}).output("y");
  EXPECT_NE(m.refusal().find("along axis 0, which is the batch's"), std::string::npos) << m.refusal();
}

TEST(OneHot, along_any_axis_and_nothing_outside) {
  ModelBuilder m(11);
  m.input("i", {3}, Type::INT64).integers("depth", {}, {3}).weight("values", {2}, {-1, 2});
  m.node("OneHot", {"i", "depth", "values"}, {"y"}, {{"axis", 0}}).output("y");
  expect_floats(m.run({longs({3}, {0, -1, 7})})[0], {3, 3}, {2, -1, -1, -1, -1, -1, -1, 2, -1});
}

TEST(Trilu, upper_and_lower_about_a_diagonal) {
  const TensorData x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_floats(run_node(14, "Trilu", {x})[0], {2, 3}, {1, 2, 3, 0, 5, 6});
  expect_floats(run_node(14, "Trilu", {x, longs({}, {1})})[0], {2, 3}, {0, 2, 3, 0, 0, 6});
  expect_floats(run_node(14, "Trilu", {x}, {{"upper", 0}})[0], {2, 3}, {1, 0, 0, 4, 5, 0});
}

TEST(EyeLike, of_a_shifted_diagonal) {
  expect_longs(run_node(22, "EyeLike", {longs({2, 3}, {7, 7, 7, 7, 7, 7})}, {{"k", 1}})[0], {2, 3}, {0, 1, 0, 0, 0, 1});
}

TEST(ReverseSequence, turns_the_first_elements_round) {
  const TensorData x = floats({3, 2}, {0, 1, 2, 3, 4, 5});
  expect_floats(run_node(10, "ReverseSequence", {x, longs({2}, {2, 3})})[0], {3, 2}, {2, 5, 0, 3, 4, 1});
}

TEST(Hardmax, marks_the_first_largest) {
  const TensorData x = floats({2, 3}, {1, 5, 5, 3, 2, 1});
  expect_floats(run_node(13, "Hardmax", {x})[0], {2, 3}, {0, 1, 0, 1, 0, 0});
  expect_floats(run_node(11, "Hardmax", {x}, {{"axis", 0}})[0], {2, 3}, {0, 1, 0, 0, 0, 0});
}

TEST(CumSum, exclusive_and_in_reverse_along_an_axis_of_the_run) {
  const TensorData x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_floats(run_node(14, "CumSum", {x, longs({}, {1})})[0], {2, 3}, {1, 3, 6, 4, 9, 15});
  expect_floats(run_node(14, "CumSum", {x, longs({}, {-2})})[0], {2, 3}, {1, 2, 3, 5, 7, 9});
  expect_floats(run_node(14, "CumSum", {x, longs({}, {1})}, {{"exclusive", 1}})[0], {2, 3}, {0, 1, 3, 0, 4, 9});
  expect_floats(run_node(14, "CumSum", {x, longs({}, {1})}, {{"reverse", 1}})[0], {2, 3}, {6, 5, 3, 15, 11, 6});
  expect_floats(run_node(14, "CumSum", {x, longs({}, {1})}, {{"reverse", 1}, {"exclusive", 1}})[0], {2, 3},
                {5, 3, 0, 11, 6, 0});
  expect_floats(run_node(26, "CumProd", {x, longs({}, {1})})[0], {2, 3}, {1, 2, 6, 4, 20, 120});
}

TEST(TopK, in_order_and_the_first_of_equals_first) {
  const TensorData x = floats({2, 4}, {3, 1, 3, 2, 4, 4, 0, 9});
  const auto largest = run_node(11, "TopK", {x, longs({1}, {3})}, {{"axis", 1}}, 2);
  expect_floats(largest[0], {2, 3}, {3, 3, 2, 9, 4, 4});
  expect_longs(largest[1], {2, 3}, {0, 2, 3, 3, 0, 1});
  const auto least = run_node(11, "TopK", {x, longs({1}, {1})}, {{"axis", 0}, {"largest", 0}}, 2);
  expect_floats(least[0], {1, 4}, {3, 1, 0, 2});
  expect_longs(least[1], {1, 4}, {0, 0, 1, 0});
}

TEST(TopK, of_a_count_whose_length_only_the_run_tells) {
  ModelBuilder m(11);
  m.input("x", {4}).input("k", {"n"}, Type::INT64).node("TopK", {"x", "k"}, {"y", "i"}).output("y").output("i");
  const auto largest = m.run({floats({4}, {3, 1, 4, 2}), longs({1}, {2})});
  expect_floats(largest[0], {2}, {4, 3});
  expect_longs(largest[1], {2}, {2, 0});

  ModelBuilder fraction(11);
  fraction.input("x", {4}).input("k", {"n"}).node("TopK", {"x", "k"}, {"y", "i"}).output("y");
  EXPECT_NE(fraction.refusal().find("the input 1 ('K') is float32, but int64 fits"), std::string::npos)
      << fraction.refusal();
}

TEST(Slice, of_lengths_that_only_the_run_tells) {
  const auto sliced = [](const std::vector<Dim>& lengths, const std::vector<TensorData>& ranges) {
    ModelBuilder m(13);
    m.input("x", {3, 4});
    std::vector<std::string> names{"x"};
    for (const Dim& length : lengths) {
      names.push_back("i" + std::to_string(names.size()));
      m.input(names.back(), {length}, Type::INT64);
    }
    std::vector<float> counting(12);
    std::iota(counting.begin(), counting.end(), 0.0f);
    std::vector<TensorData> inputs{floats({3, 4}, counting)};
    inputs.insert(inputs.end(), ranges.begin(), ranges.end());
    return m.node("Slice", names, {"y"}).output("y").run(inputs).at(0);
  };
  const auto one = [](int64_t value) { return longs({1}, {value}); };
  expect_floats(sliced({"a", "b"}, {one(1), one(3)}), {2, 4}, {4, 5, 6, 7, 8, 9, 10, 11});
  expect_floats(sliced({"a", "b", "c", "d"}, {one(-1), one(-9), one(1), one(-2)}), {3, 2}, {3, 1, 7, 5, 11, 9});
  expect_floats(sliced({"a", 1, "c"}, {one(1), one(2), one(-1)}), {3, 1}, {1, 5, 9});
}

}  // namespace
}  // namespace lathe::onnx
