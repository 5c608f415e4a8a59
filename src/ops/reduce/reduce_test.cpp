#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace reduce_test {

using ir::make;
using Axis = std::optional<Extents>;

// Folds the elements of each output, in any order.
Array fold(const Array& x, const Axis& axis, bool keepdims, double start,
           const std::function<double(double total, double value)>& f, bool mean = false) {
  const size_t rank = x.shape.size();
  std::vector<bool> reduced(rank, !axis);
  if (axis)
    for (const int64_t a : *axis) reduced[static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(rank) : a)] = true;
  Extents kept, shape;
  double count = 1;
  for (size_t d = 0; d < rank; ++d) {
    kept.push_back(reduced[d] ? 1 : x.shape[d]);
    if (!reduced[d] || keepdims) shape.push_back(kept.back());
    if (reduced[d]) count *= static_cast<double>(x.shape[d]);
  }
  Array totals = zeros(DType::float_(64), kept);
  std::fill(totals.values.begin(), totals.values.end(), start);
  for_each_index(x.shape, [&](const Extents& i) {
    Extents at = i;
    for (size_t d = 0; d < rank; ++d)
      if (reduced[d]) at[d] = 0;
    totals.at(at) = f(totals.at(at), x.at(i));
  });
  Array out{x.dtype, shape, totals.values};
  for (double& v : out.values) v = rounded(x.dtype, mean ? v / count : v);
  return out;
}

const std::vector<std::pair<Extents, Axis>> cases{
    {{3, 4, 5}, std::nullopt}, {{3, 4, 5}, Extents{1}}, {{3, 4, 5}, Extents{-1, 0}}, {{7}, Extents{0}},
    {{3, 4}, Extents{}},       {{}, std::nullopt},      {{2, 1, 5}, Extents{1, 2}},  {{0, 4}, Extents{1}}};

TEST(reduce, folds_any_axes) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [shape, axis] : cases)
    for (const bool keepdims : {false, true})
      for (const DType dtype : floats) {
        const Array x = random_array(dtype, shape, 1, -1.5, 1.5);
        const auto attributes = make<ReduceAttributes>(axis, keepdims);
        const auto add_up = [](double a, double b) { return a + b; };
        EXPECT_TRUE(close(run(sum, {x}, attributes)[0], fold(x, axis, keepdims, 0, add_up), 16, 4));
        EXPECT_TRUE(close(run(mean, {x}, attributes)[0], fold(x, axis, keepdims, 0, add_up, true), 16));
        EXPECT_TRUE(close(run(prod, {x}, attributes)[0],
                          fold(x, axis, keepdims, 1, [](double a, double b) { return a * b; }), 64));
        EXPECT_TRUE(close(run(max, {x}, attributes)[0],
                          fold(x, axis, keepdims, -infinity, [](double a, double b) { return std::max(a, b); })));
        EXPECT_TRUE(close(run(min, {x}, attributes)[0],
                          fold(x, axis, keepdims, infinity, [](double a, double b) { return std::min(a, b); })));
      }
}

TEST(reduce, folds_integers_and_bools) {
  for (const DType dtype : integers) {
    const Array x = random_array(dtype, {3, 4}, 2, -3, 3);
    const auto attributes = make<ReduceAttributes>(Axis(Extents{1}), false);
    EXPECT_TRUE(
        close(run(sum, {x}, attributes)[0], fold(x, Extents{1}, false, 0, [](double a, double b) { return a + b; })));
    EXPECT_TRUE(close(run(max, {x}, attributes)[0],
                      fold(x, Extents{1}, false, -1e9, [](double a, double b) { return std::max(a, b); })));
    EXPECT_TRUE(close(run(mean, {array(dtype, {2}, {3, 4})})[0], array(dtype, {}, {3}))) << "the quotient is truncated";
  }
  const Array flags = array(DType::boolean(), {2, 2}, {0, 1, 1, 1});
  EXPECT_TRUE(close(run(max, {flags}, make<ReduceAttributes>(Axis(Extents{0}), false))[0],
                    array(DType::boolean(), {2}, {1, 1})));
  EXPECT_TRUE(close(run(min, {flags}, make<ReduceAttributes>(Axis(Extents{0}), false))[0],
                    array(DType::boolean(), {2}, {0, 1})));
}

TEST(reduce, gives_the_identity_of_nothing) {
  const Array x = zeros(DType::float32(), {2, 0});
  const double infinity = std::numeric_limits<double>::infinity();
  const auto of = [&](const Operator& op) {
    return run(op, {x}, make<ReduceAttributes>(Axis(Extents{1}), false))[0].values;
  };
  EXPECT_EQ(of(sum), (std::vector<double>{0, 0}));
  EXPECT_EQ(of(prod), (std::vector<double>{1, 1}));
  EXPECT_EQ(of(max), (std::vector<double>{-infinity, -infinity}));
  EXPECT_EQ(of(min), (std::vector<double>{infinity, infinity}));
  EXPECT_TRUE(std::isnan(of(mean)[0]));
}

TEST(reduce, accumulates_half_precision_in_float32) {
  const Array x = array(DType::float_(16), {5000}, std::vector<double>(5000, 1));
  EXPECT_EQ(run(sum, {x}, {}, {.symbolic = false})[0].values[0], 5000) << "float16 alone stops at 2048";
}

TEST(reduce, refuses_wrong_axes) {
  const Array x = zeros(DType::float32(), {2, 3});
  EXPECT_EQ(refusal(sum, {x}, make<ReduceAttributes>(Axis(Extents{2}), false))[0].code,
            relax::codes::axis_out_of_range);
  EXPECT_EQ(refusal(sum, {x}, make<ReduceAttributes>(Axis(Extents{1, -1}), false))[0].code,
            relax::codes::axis_out_of_range);
  EXPECT_EQ(refusal(sum, {zeros(DType::boolean(), {2})})[0].code, relax::codes::dtype_not_supported);
}

Array arg_reference(const Array& x, std::optional<int64_t> axis, bool keepdims, bool largest, bool last) {
  const size_t rank = x.shape.size();
  std::vector<bool> reduced(rank, !axis);
  if (axis) reduced[static_cast<size_t>(*axis < 0 ? *axis + static_cast<int64_t>(rank) : *axis)] = true;
  Extents kept, shape;
  for (size_t d = 0; d < rank; ++d) {
    kept.push_back(reduced[d] ? 1 : x.shape[d]);
    if (!reduced[d] || keepdims) shape.push_back(kept.back());
  }
  Array best = zeros(DType::float_(64), kept), index = zeros(DType::int_(64), kept);
  std::fill(best.values.begin(), best.values.end(), std::numeric_limits<double>::quiet_NaN());
  std::vector<bool> seen(best.values.size());
  for_each_index(x.shape, [&](const Extents& i) {
    Extents at = i;
    int64_t position = 0;
    for (size_t d = 0; d < rank; ++d)
      if (reduced[d]) {
        at[d] = 0;
        position = position * x.shape[d] + i[d];
      }
    const auto slot = static_cast<size_t>(best.offset(at));
    const double v = x.at(i), b = best.values[slot];
    const bool better = std::isnan(b) ? false : std::isnan(v) || (largest ? v > b : v < b);
    const bool tie = v == b || (std::isnan(v) && std::isnan(b));
    if (seen[slot] && !better && !(last && tie)) return;
    seen[slot] = true;
    best.values[slot] = v;
    index.values[slot] = static_cast<double>(position);
  });
  index.shape = shape;
  return index;
}

TEST(arg_reduce, finds_the_extreme) {
  for (const auto& [shape, axis] : std::vector<std::pair<Extents, std::optional<int64_t>>>{{{3, 4, 5}, 0},
                                                                                           {{3, 4, 5}, -1},
                                                                                           {{3, 4}, std::nullopt},
                                                                                           {{7}, 0},
                                                                                           {{}, std::nullopt},
                                                                                           {{0, 3}, 1},
                                                                                           {{2, 1}, 1}})
    for (const bool keepdims : {false, true})
      for (const bool last : {false, true})
        for (const DType dtype : {DType::float32(), DType::float_(16), DType::int_(32), DType::uint(8)}) {
          const Array x = random_array(dtype.is_floating() ? dtype : dtype, shape, 3, -2, 2);
          Array ties = x;  // few distinct values
          for (double& v : ties.values) v = rounded(dtype, std::round(v));
          const auto attributes = make<ArgReduceAttributes>(axis, keepdims, last);
          EXPECT_TRUE(close(run(argmax, {ties}, attributes)[0], arg_reference(ties, axis, keepdims, true, last)));
          EXPECT_TRUE(close(run(argmin, {ties}, attributes)[0], arg_reference(ties, axis, keepdims, false, last)));
        }
}

TEST(arg_reduce, holds_nan_for_extreme) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const Array x = array(DType::float32(), {2, 4}, {1, nan, infinity, nan, -infinity, -infinity, -infinity, -infinity});
  for (const bool last : {false, true}) {
    const auto attributes = make<ArgReduceAttributes>(std::optional<int64_t>(1), false, last);
    EXPECT_TRUE(close(run(argmax, {x}, attributes)[0], arg_reference(x, 1, false, true, last)));
    EXPECT_TRUE(close(run(argmin, {x}, attributes)[0], arg_reference(x, 1, false, false, last)));
  }
}

TEST(arg_reduce, refuses_an_empty_axis) {
  const Array x = zeros(DType::float32(), {2, 0});
  EXPECT_EQ(refusal(argmax, {x}, make<ArgReduceAttributes>(std::optional<int64_t>(1)))[0].code,
            relax::codes::shape_mismatch);
  EXPECT_EQ(refusal(argmax, {x}, make<ArgReduceAttributes>(std::optional<int64_t>(2)))[0].code,
            relax::codes::axis_out_of_range);
}

}  // namespace reduce_test
}  // namespace lathe::ops::testing
