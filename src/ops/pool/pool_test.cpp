#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace pool_test {

using ir::make;

struct Pool {
  Extents x, size, strides, padding, dilation;
  bool ceil_mode = false;
};

int64_t at_or(const Extents& values, size_t i, int64_t fallback) { return values.empty() ? fallback : values[i]; }

Extents pooled_shape(const Pool& p) {
  Extents shape{p.x[0], p.x[1]};
  const size_t spatial = p.size.size();
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t stride = at_or(p.strides, d, 1), begin = at_or(p.padding, d, 0);
    const int64_t padded = p.x[2 + d] + begin + at_or(p.padding, spatial + d, 0);
    const int64_t room = padded - ((p.size[d] - 1) * at_or(p.dilation, d, 1) + 1);
    int64_t count = room / stride + 1;
    if (p.ceil_mode) {
      count = (room + stride - 1) / stride + 1;
      if ((count - 1) * stride >= p.x[2 + d] + begin) --count;
    }
    shape.push_back(count);
  }
  return shape;
}

// Calls `f` with each cell of the window at `i`: its index in x and whether it is in x or in the padding; cells past
// the padding are left out.
void for_each_cell(const Pool& p, const Extents& i, const std::function<void(const Extents&, bool)>& f) {
  const size_t spatial = p.size.size();
  for_each_index(p.size, [&](const Extents& k) {
    Extents cell{i[0], i[1]};
    bool inside = true;
    for (size_t d = 0; d < spatial; ++d) {
      cell.push_back(i[2 + d] * at_or(p.strides, d, 1) + k[d] * at_or(p.dilation, d, 1) - at_or(p.padding, d, 0));
      inside = inside && cell.back() >= 0 && cell.back() < p.x[2 + d];
      if (cell.back() >= p.x[2 + d] + at_or(p.padding, spatial + d, 0)) return;
    }
    f(cell, inside);
  });
}

const std::vector<Pool> pools{
    {.x = {1, 2, 6, 5}, .size = {2, 3}},
    {.x = {2, 2, 7, 6}, .size = {3, 2}, .strides = {2, 3}, .padding = {1, 0, 1, 1}},
    {.x = {1, 2, 7, 8}, .size = {3, 3}, .strides = {2, 2}, .ceil_mode = true},
    {.x = {1, 1, 5, 4}, .size = {2, 2}, .strides = {3, 3}, .padding = {1, 1, 1, 1}, .ceil_mode = true},
    {.x = {1, 2, 9, 8}, .size = {3, 2}, .strides = {1, 2}, .padding = {1, 1, 1, 1}, .dilation = {2, 3}},
    {.x = {2, 3, 11}, .size = {4}, .strides = {3}, .padding = {2, 1}},
    {.x = {1, 2, 4, 5, 3}, .size = {2, 2, 2}, .strides = {2, 1, 1}},
    {.x = {0, 2, 4, 4}, .size = {2, 2}},
    {.x = {1, 1, 2, 3}, .size = {2, 2}, .strides = {2, 2}, .ceil_mode = true},
};

relax::Ref<PoolAttributes> attributes_of(const Pool& p, bool include_pad = false) {
  return make<PoolAttributes>(p.size, p.strides, p.padding, p.dilation, p.ceil_mode, "NOTSET", "NCHW", include_pad);
}

TEST(pool, takes_the_largest) {
  for (const Pool& p : pools)
    for (const auto& dtypes : {floats, integers})
      for (const DType dtype : dtypes) {
        const Array x = random_array(dtype, p.x, 1, -20, -1);
        Array expected = zeros(dtype, pooled_shape(p));
        for_each_index(expected.shape, [&](const Extents& i) {
          double best = -std::numeric_limits<double>::infinity();
          for_each_cell(p, i, [&](const Extents& cell, bool inside) {
            if (inside) best = std::max(best, x.at(cell));
          });
          expected.at(i) = best;
        });
        EXPECT_TRUE(
            close(run(max_pool, {x}, attributes_of(p), {.symbolic = dtype == DType::float32()})[0], expected, 0));
      }
}

TEST(pool, lets_nan_win) {
  Array x = zeros(DType::float32(), {1, 1, 2, 2});
  x.values[2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(run(max_pool, {x}, make<PoolAttributes>(Extents{2, 2}))[0].values[0]));
}

TEST(pool, tells_where_the_largest_lies) {
  for (const Pool& p : pools) {
    const Array x = random_array(DType::float32(), p.x, 2, -2, 2);
    const auto outputs = run(max_pool_with_indices, {x}, attributes_of(p));
    ASSERT_EQ(outputs.size(), 2u);
    Array expected = zeros(DType::int_(64), pooled_shape(p));
    for_each_index(expected.shape, [&](const Extents& i) {
      double best = -std::numeric_limits<double>::infinity();
      for_each_cell(p, i, [&](const Extents& cell, bool inside) {
        if (!inside || x.at(cell) <= best) return;
        best = x.at(cell);
        expected.at(i) = static_cast<double>(x.offset(cell));
      });
    });
    EXPECT_TRUE(close(outputs[1], expected));
  }
}

TEST(pool, takes_the_mean) {
  for (const Pool& p : pools)
    for (const bool include_pad : {false, true})
      for (const DType dtype : floats) {
        const Array x = random_array(dtype, p.x, 3);
        Array expected = zeros(dtype, pooled_shape(p));
        for_each_index(expected.shape, [&](const Extents& i) {
          double total = 0, count = 0;
          for_each_cell(p, i, [&](const Extents& cell, bool inside) {
            if (inside) total += x.at(cell);
            count += inside || include_pad;
          });
          expected.at(i) = rounded(dtype, total / count);
        });
        EXPECT_TRUE(close(run(avg_pool, {x}, attributes_of(p, include_pad))[0], expected, 8, 4));
      }
}

TEST(pool, reads_channels_last) {
  const Array x = random_array(DType::float32(), {2, 5, 4, 3}, 4);
  auto attributes = make<PoolAttributes>(Extents{2, 3}, Extents{2, 1}, Extents{}, Extents{}, false, "NOTSET", "NHWC");
  Array expected = zeros(DType::float32(), {2, 2, 2, 3});
  for_each_index(expected.shape, [&](const Extents& i) {
    double best = -1e9;
    for (int64_t r = 0; r < 2; ++r)
      for (int64_t s = 0; s < 3; ++s) best = std::max(best, x.at({i[0], i[1] * 2 + r, i[2] + s, i[3]}));
    expected.at(i) = best;
  });
  EXPECT_TRUE(close(run(max_pool, {x}, attributes)[0], expected, 0));
}

TEST(pool, pads_by_rule) {
  const Array x = random_array(DType::float32(), {1, 1, 5}, 5);
  const auto pooled = [&](const std::string& rule) {
    return run(max_pool, {x}, make<PoolAttributes>(Extents{2}, Extents{1}, Extents{}, Extents{}, false, rule))[0]
        .values;
  };
  const auto v = x.values;
  EXPECT_EQ(pooled("SAME_UPPER"), (std::vector{std::max(v[0], v[1]), std::max(v[1], v[2]), std::max(v[2], v[3]),
                                               std::max(v[3], v[4]), v[4]}));
  EXPECT_EQ(pooled("SAME_LOWER"), (std::vector{v[0], std::max(v[0], v[1]), std::max(v[1], v[2]), std::max(v[2], v[3]),
                                               std::max(v[3], v[4])}));
}

TEST(pool, refuses_what_does_not_fit) {
  const Array x = zeros(DType::float32(), {1, 2, 3, 3});
  EXPECT_EQ(refusal(max_pool, {x}, make<PoolAttributes>(Extents{4, 1}))[0].code, relax::codes::shape_mismatch);
  EXPECT_EQ(refusal(max_pool, {x}, make<PoolAttributes>(Extents{2}))[0].code, relax::codes::wrong_attribute);
  EXPECT_EQ(refusal(max_pool, {zeros(DType::float32(), {3, 3})}, make<PoolAttributes>(Extents{}))[0].code,
            relax::codes::wrong_rank);
  auto layout = make<PoolAttributes>(Extents{1, 1}, Extents{}, Extents{}, Extents{}, false, "NOTSET", "CHWN");
  EXPECT_EQ(refusal(avg_pool, {x}, layout)[0].code, relax::codes::wrong_attribute);
}

}  // namespace pool_test
}  // namespace lathe::ops::testing
