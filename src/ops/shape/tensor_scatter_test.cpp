#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace tensor_scatter_test {

relax::AttributesRef attributes(int64_t axis, const char* mode) {
  return tensor_scatter.attributes->from_values({{"axis", axis}, {"mode", mode}}).value_or_throw();
}

// Element by element, as the specification's loop writes; what lies outside is dropped.
Array scattered(const Array& x, const Array& update, const Extents& starts, size_t axis, bool circular) {
  Array result = x;
  for_each_index(update.shape, [&](const Extents& i) {
    Extents to = i;
    int64_t& at = to[axis];
    at += starts[static_cast<size_t>(i[0])];
    if (circular) at = (at % x.shape[axis] + x.shape[axis]) % x.shape[axis];
    if (at >= 0 && at < x.shape[axis]) result.at(to) = update.at(i);
  });
  return result;
}

Array indices(const Extents& starts, DType dtype = DType::int_(64)) {
  return array(dtype, {static_cast<int64_t>(starts.size())}, std::vector<double>(starts.begin(), starts.end()));
}

TEST(tensor_scatter, writes_each_batch_element_from_its_own_index) {
  for (const bool circular : {false, true})
    for (const int64_t axis : {1, 2, -1, -2})
      for (const int64_t length : {0, 1, 2, 3})
        for (const Extents& starts : std::vector<Extents>{{0, 0}, {1, 3}, {2, 0}, {-1, 7}}) {
          const auto along = static_cast<size_t>((axis + 3) % 3);
          const Array x = random_array(DType::float32(), {2, 4, 5}, 1);
          Extents written = x.shape;
          written[along] = length;
          const Array update = random_array(DType::float32(), written, 2);
          const auto a = attributes(axis, circular ? "circular" : "linear");
          EXPECT_TRUE(close(run(tensor_scatter, {x, update, indices(starts)}, a)[0],
                            scattered(x, update, starts, along, circular), 0))
              << axis << " " << length << " " << starts[0] << " " << starts[1] << (circular ? " circular" : " linear");
        }
}

TEST(tensor_scatter, takes_every_dtype_and_rank) {
  std::vector<DType> dtypes = integers;
  dtypes.insert(dtypes.end(), floats.begin(), floats.end());
  dtypes.push_back(DType::boolean());
  for (const DType dtype : dtypes)
    for (const Extents& shape : std::vector<Extents>{{3, 4}, {3, 4, 2}, {3, 2, 4, 2}, {3, 1, 2, 4, 2}}) {
      const size_t axis = shape.size() - (shape.size() > 2 ? 2 : 1);
      Extents written = shape;
      written[axis] = 2;
      const Array x = random_array(dtype, shape, 1, 0, 1), update = random_array(dtype, written, 2, 0, 1);
      const auto a = attributes(static_cast<int64_t>(axis), "linear");
      const DType index = dtype.is_int() || dtype.is_uint() ? dtype : DType::int_(32);
      EXPECT_TRUE(close(run(tensor_scatter, {x, update, indices({2, 0, 1}, index)}, a)[0],
                        scattered(x, update, {2, 0, 1}, axis, false), 0))
          << dtype.str() << " " << shape.size();
    }
}

TEST(tensor_scatter, writes_from_the_first_position_without_indices) {
  for (const char* mode : {"linear", "circular"})
    for (const Extents& shape : std::vector<Extents>{{2, 3, 4}, {0, 3, 4}, {2, 3, 0}, {2, 2, 4}}) {
      const Array x = random_array(DType::int_(8), shape, 1);
      const Array update = random_array(DType::int_(8), {shape[0], 2, shape[2]}, 2);
      const Array expected = scattered(x, update, {0, 0}, 1, false);
      EXPECT_TRUE(close(run(tensor_scatter, {x, update}, attributes(-2, mode))[0], expected));
      EXPECT_TRUE(close(run(tensor_scatter, {x, update, std::monostate()}, attributes(1, mode))[0], expected));
    }
}

TEST(tensor_scatter, of_a_cache_without_positions_is_that_cache) {
  const Array x = zeros(DType::float32(), {2, 0, 3});
  for (const char* mode : {"linear", "circular"})
    EXPECT_TRUE(close(run(tensor_scatter, {x, x, indices({5, -1})}, attributes(1, mode))[0], x));
}

TEST(tensor_scatter, stays_inside_at_the_ends_of_the_indices_range) {
  const Array x = random_array(DType::float32(), {2, 4, 1}, 1), update = random_array(DType::float32(), {2, 3, 1}, 2);
  const double far = std::ldexp(1.0, 62);
  const Array starts = array(DType::int_(64), {2}, {far, -2 * far});
  EXPECT_TRUE(close(run(tensor_scatter, {x, update, starts}, attributes(1, "linear"))[0], x));
  EXPECT_TRUE(close(run(tensor_scatter, {x, update, starts}, attributes(1, "circular"))[0],
                    scattered(x, update, {0, 0}, 1, true)));  // multiples of four
}

TEST(tensor_scatter, refuses_what_does_not_fit) {
  const Array x = zeros(DType::float32(), {2, 4, 3}), update = zeros(DType::float32(), {2, 2, 3});
  const auto code = [](const std::vector<Argument>& args, int64_t axis = -2, const char* mode = "linear") {
    return refusal(tensor_scatter, args, attributes(axis, mode)).at(0).code;
  };
  EXPECT_EQ(code({x, update}, 0), relax::codes::wrong_attribute);
  EXPECT_EQ(code({x, update}, 3), relax::codes::axis_out_of_range);
  EXPECT_EQ(code({x, update}, 1, "round"), relax::codes::wrong_attribute);
  EXPECT_EQ(code({x, update}, 2), relax::codes::shape_mismatch);
  EXPECT_EQ(code({update, x}), relax::codes::shape_mismatch);  // longer than the cache
  EXPECT_EQ(code({x, zeros(DType::float32(), {2, 3})}), relax::codes::shape_mismatch);
  EXPECT_EQ(code({x, update, indices({0, 0, 0})}), relax::codes::shape_mismatch);
  EXPECT_EQ(code({x, update, zeros(DType::int_(64), {2, 1})}), relax::codes::shape_mismatch);
  EXPECT_EQ(code({x, zeros(DType::int_(8), {2, 2, 3})}), relax::codes::dtype_mismatch);
  EXPECT_EQ(code({x, update, zeros(DType::float32(), {2})}), relax::codes::dtype_not_supported);
}

}  // namespace tensor_scatter_test
}  // namespace lathe::ops::testing
