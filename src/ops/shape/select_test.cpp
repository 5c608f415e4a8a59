#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace select_test {

using ir::make;

// The positions of Python's range(extent)[begin:end:stride].
Extents positions(int64_t extent, int64_t begin, int64_t end, int64_t stride) {
  const auto clamp_to = [&](int64_t at) {
    if (at < 0) at = at < -extent ? -1 : at + extent;
    return stride > 0 ? std::clamp<int64_t>(at < 0 ? 0 : at, 0, extent) : std::clamp<int64_t>(at, -1, extent - 1);
  };
  Extents result;
  const int64_t stop = clamp_to(end);
  for (int64_t at = clamp_to(begin); stride > 0 ? at < stop : at > stop; at += stride) result.push_back(at);
  return result;
}

TEST(strided_slice, follows_python) {
  const int64_t far = std::numeric_limits<int64_t>::max();
  for (const int64_t extent : {7, 1, 0})
    for (const int64_t begin : {int64_t{0}, int64_t{2}, int64_t{-3}, int64_t{-9}, int64_t{9}})
      for (const int64_t end : {int64_t{0}, int64_t{5}, int64_t{-1}, far, -far, int64_t{8}})
        for (const int64_t stride : {1, 2, 3, -1, -2, -5}) {
          const Array x = random_array(DType::float32(), {2, extent}, 1);
          const Extents taken = positions(extent, begin, end, stride);
          Array expected = zeros(x.dtype, {2, static_cast<int64_t>(taken.size())});
          for_each_index(expected.shape,
                         [&](const Extents& i) { expected.at(i) = x.at({i[0], taken[static_cast<size_t>(i[1])]}); });
          const auto attributes = make<StridedSliceAttributes>(Extents{-1}, Extents{stride});
          EXPECT_TRUE(close(run(strided_slice, {x, Extents{begin}, Extents{end}}, attributes)[0], expected, 0))
              << extent << "[" << begin << ":" << end << ":" << stride << "]";
        }
}

TEST(strided_slice, takes_leading_axes_where_none_are_named) {
  const Array x = random_array(DType::int_(8), {4, 5, 3}, 1);
  const Array y = run(strided_slice, {x, Extents{1, 0}, Extents{3, 2}}, make<StridedSliceAttributes>())[0];
  Array expected = zeros(x.dtype, {2, 2, 3});
  for_each_index(expected.shape, [&](const Extents& i) { expected.at(i) = x.at({i[0] + 1, i[1], i[2]}); });
  EXPECT_TRUE(close(y, expected));
}

TEST(strided_slice, refuses_what_does_not_fit) {
  const Array x = zeros(DType::float32(), {4});
  const auto with = [](Extents axes, Extents strides) {
    return make<StridedSliceAttributes>(std::move(axes), std::move(strides));
  };
  EXPECT_EQ(refusal(strided_slice, {x, Extents{0}, Extents{1}}, with({0}, {0}))[0].code, relax::codes::wrong_attribute);
  EXPECT_EQ(refusal(strided_slice, {x, Extents{0}, Extents{1, 2}}, with({0}, {}))[0].code,
            relax::codes::wrong_arguments);
  EXPECT_EQ(refusal(strided_slice, {x, Extents{0}, Extents{1}}, with({1}, {}))[0].code,
            relax::codes::axis_out_of_range);
}

TEST(take, gathers_by_indices) {
  for (const DType index : {DType::int_(32), DType::int_(64)})
    for (const int64_t axis : {0, 1, -1})
      for (const Extents& shape : std::vector<Extents>{{}, {2}, {2, 3}, {0}}) {
        const Array x = random_array(DType::float32(), {4, 3, 5}, 1);
        const auto a = static_cast<size_t>((axis + 3) % 3);
        const Array indices =
            random_array(index, shape, 2, static_cast<double>(-x.shape[a]), static_cast<double>(x.shape[a] - 1));
        Extents out(x.shape.begin(), x.shape.begin() + static_cast<int64_t>(a));
        out.insert(out.end(), shape.begin(), shape.end());
        out.insert(out.end(), x.shape.begin() + static_cast<int64_t>(a) + 1, x.shape.end());
        Array expected = zeros(x.dtype, out);
        for_each_index(out, [&](const Extents& i) {
          const auto middle = i.begin() + static_cast<int64_t>(a), rest = middle + static_cast<int64_t>(shape.size());
          auto at = static_cast<int64_t>(indices.at(Extents(middle, rest)));
          if (at < 0) at += x.shape[a];
          Extents from(i.begin(), middle);
          from.push_back(at);
          from.insert(from.end(), rest, i.end());
          expected.at(i) = x.at(from);
        });
        EXPECT_TRUE(close(run(take, {x, indices}, make<AxisAttributes>(axis))[0], expected, 0));
      }
}

TEST(take, stays_inside_the_tensor) {
  const Array x = array(DType::float32(), {3}, {5, 6, 7}), indices = array(DType::int_(64), {2}, {100, -100});
  EXPECT_TRUE(close(run(take, {x, indices})[0], array(DType::float32(), {2}, {7, 5})));
}

TEST(take, refuses_what_does_not_fit) {
  const Array x = zeros(DType::float32(), {0, 3}), indices = zeros(DType::int_(64), {2});
  EXPECT_EQ(refusal(take, {x, indices})[0].code, relax::codes::shape_mismatch);
  EXPECT_EQ(refusal(take, {x, zeros(DType::float32(), {2})}, make<AxisAttributes>(int64_t{1}))[0].code,
            relax::codes::dtype_not_supported);
  EXPECT_EQ(refusal(take, {x, indices}, make<AxisAttributes>(int64_t{2}))[0].code, relax::codes::axis_out_of_range);
}

}  // namespace select_test
}  // namespace lathe::ops::testing
