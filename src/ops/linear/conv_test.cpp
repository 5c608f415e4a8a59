#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace conv_test {

using ir::make;

struct Conv {
  Extents x, kernel;
  Extents strides, padding, dilation;
  int64_t groups = 1;
};

int64_t at_or(const Extents& values, size_t i, int64_t fallback) { return values.empty() ? fallback : values[i]; }

// [batch, channels, spatial…] by loops.
Array reference(const Conv& c, const Array& x, const Array& kernel) {
  const size_t spatial = x.shape.size() - 2;
  Extents shape{x.shape[0], kernel.shape[0]};
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t reach = (kernel.shape[2 + d] - 1) * at_or(c.dilation, d, 1) + 1;
    const int64_t room = x.shape[2 + d] + at_or(c.padding, d, 0) + at_or(c.padding, spatial + d, 0) - reach;
    shape.push_back(room < 0 ? 0 : room / at_or(c.strides, d, 1) + 1);
  }
  Array out = zeros(x.dtype, shape);
  const int64_t inputs = kernel.shape[1], outputs = kernel.shape[0] / c.groups;
  const Extents cells(kernel.shape.begin() + 2, kernel.shape.end());
  for_each_index(shape, [&](const Extents& i) {
    double total = 0;
    for (int64_t channel = 0; channel < inputs; ++channel)
      for_each_index(cells, [&](const Extents& k) {
        Extents from{i[0], (i[1] / outputs) * inputs + channel}, weight{i[1], channel};
        for (size_t d = 0; d < spatial; ++d) {
          from.push_back(i[2 + d] * at_or(c.strides, d, 1) + k[d] * at_or(c.dilation, d, 1) - at_or(c.padding, d, 0));
          weight.push_back(k[d]);
          if (from.back() < 0 || from.back() >= x.shape[2 + d]) return;
        }
        total += x.at(from) * kernel.at(weight);
      });
    out.at(i) = rounded(x.dtype, total);
  });
  return out;
}

Array moved(const Array& x, const Extents& axes) {
  return run(permute_dims, {x}, make<PermuteDimsAttributes>(std::optional(axes)), {.symbolic = false})[0];
}

const std::vector<Conv> convolutions{
    {.x = {1, 3, 7, 5}, .kernel = {4, 3, 3, 3}},
    {.x = {2, 3, 7, 5}, .kernel = {4, 3, 3, 2}, .strides = {2, 1}, .padding = {1, 0, 2, 3}},
    {.x = {1, 2, 9, 8}, .kernel = {3, 2, 3, 2}, .padding = {2, 1, 2, 1}, .dilation = {2, 3}},
    {.x = {1, 6, 5, 5}, .kernel = {4, 3, 3, 3}, .padding = {1, 1, 1, 1}, .groups = 2},
    {.x = {2, 5, 6, 5}, .kernel = {5, 1, 3, 3}, .strides = {2, 2}, .padding = {1, 1, 1, 1}, .groups = 5},
    {.x = {1, 3, 4, 4}, .kernel = {6, 1, 1, 1}, .groups = 3},
    {.x = {2, 3, 11}, .kernel = {5, 3, 4}, .strides = {3}, .padding = {2, 1}},
    {.x = {1, 2, 4, 5, 3}, .kernel = {3, 2, 2, 3, 1}, .padding = {0, 1, 0, 1, 0, 0}},
    {.x = {0, 3, 4, 4}, .kernel = {2, 3, 3, 3}},
    {.x = {1, 1, 1, 1}, .kernel = {1, 1, 1, 1}},
};

relax::Ref<ConvAttributes> attributes_of(const Conv& c) {
  return make<ConvAttributes>(c.strides, c.padding, c.dilation, c.groups);
}

TEST(conv, convolves) {
  for (const Conv& c : convolutions)
    for (const DType dtype : floats) {
      const Array x = random_array(dtype, c.x, 1, -2, 2), kernel = random_array(dtype, c.kernel, 2, -2, 2);
      EXPECT_TRUE(close(run(conv, {x, kernel}, attributes_of(c))[0], reference(c, x, kernel), 32, 4));
    }
}

TEST(conv, reads_channels_last) {
  for (const Conv& c : convolutions) {
    const Array x = random_array(DType::float32(), c.x, 1), kernel = random_array(DType::float32(), c.kernel, 2);
    Extents to_last{0}, to_first{0, static_cast<int64_t>(c.x.size()) - 1};
    for (size_t d = 2; d < c.x.size(); ++d) {
      to_last.push_back(static_cast<int64_t>(d));
      to_first.push_back(static_cast<int64_t>(d) - 1);
    }
    to_last.push_back(1);
    auto attributes = ir::with(*attributes_of(c), [](ConvAttributes& a) { a.data_layout = "NHWC"; });
    const Array y = run(conv, {moved(x, to_last), kernel}, attributes)[0];
    EXPECT_TRUE(close(moved(y, to_first), reference(c, x, kernel), 64, 4));
  }
}

TEST(conv, reads_packed_kernels) {
  for (const Conv& c : convolutions)
    for (const int64_t lanes : {1, 4}) {
      const Array x = random_array(DType::float32(), c.x, 1), kernel = random_array(DType::float32(), c.kernel, 2);
      const Array packed = run(pack_kernel, {kernel}, make<PackAttributes>(lanes), {.symbolic = false})[0];
      auto attributes = ir::with(*attributes_of(c), [&](ConvAttributes& a) {
        a.kernel_layout = "OHWI" + std::to_string(lanes) + "o";
        a.channels = c.kernel[0];
      });
      EXPECT_TRUE(close(run(conv, {x, packed}, attributes, {.symbolic = false})[0], reference(c, x, kernel), 64, 4));
    }
}

TEST(conv, pads_by_rule) {
  const Array x = random_array(DType::float32(), {1, 2, 7, 6}, 1),
              kernel = random_array(DType::float32(), {3, 2, 4, 3}, 2);
  const auto padded = [&](const std::string& rule) {
    return run(conv, {x, kernel}, make<ConvAttributes>(Extents{2, 2}, Extents{}, Extents{}, int64_t{1}, rule))[0];
  };
  // ceil(7 / 2) = 4 rows reach (4 - 1) * 2 + 4 = 10 cells: 3 of padding; ceil(6 / 2) = 3 columns reach 7: 1.
  Conv upper{.x = x.shape, .kernel = kernel.shape, .strides = {2, 2}, .padding = {1, 0, 2, 1}};
  Conv lower = upper, valid = upper;
  lower.padding = {2, 1, 1, 0};
  valid.padding = {};
  EXPECT_TRUE(close(padded("SAME_UPPER"), reference(upper, x, kernel), 64, 4));
  EXPECT_TRUE(close(padded("SAME_LOWER"), reference(lower, x, kernel), 64, 4));
  EXPECT_TRUE(close(padded("VALID"), reference(valid, x, kernel), 64, 4));
}

TEST(conv, refuses_what_does_not_fit) {
  const Array x = zeros(DType::float32(), {1, 4, 5, 5}), kernel = zeros(DType::float32(), {6, 4, 3, 3});
  const auto code = [&](const std::vector<Argument>& args, const relax::AttributesRef& attributes) {
    const auto failed = refusal(conv, args, attributes);
    return failed.empty() ? std::string("accepted") : std::string(failed[0].code.name);
  };
  EXPECT_EQ(code({x, kernel}, {}), "accepted");
  EXPECT_EQ(code({x, zeros(DType::float32(), {6, 3, 3, 3})}, {}), "relax-shape-mismatch");
  EXPECT_EQ(code({x, zeros(DType::float32(), {6, 4, 3})}, {}), "relax-wrong-rank");
  EXPECT_EQ(code({x, zeros(DType::float32(), {6, 4, 7, 3})}, {}), "relax-shape-mismatch");
  EXPECT_EQ(code({x, zeros(DType::float32(), {5, 2, 3, 3})},
                 make<ConvAttributes>(Extents{}, Extents{}, Extents{}, int64_t{2})),
            "relax-shape-mismatch");
  EXPECT_EQ(code({x, kernel}, make<ConvAttributes>(Extents{1})), "relax-wrong-attribute");
  EXPECT_EQ(code({x, kernel}, make<ConvAttributes>(Extents{0, 1})), "relax-wrong-attribute");
  EXPECT_EQ(code({x, kernel}, make<ConvAttributes>(Extents{}, Extents{-1, 0, 0, 0})), "relax-wrong-attribute");
  EXPECT_EQ(code({x, kernel}, make<ConvAttributes>(Extents{}, Extents{}, Extents{}, int64_t{0})),
            "relax-wrong-attribute");
  EXPECT_EQ(code({x, kernel}, make<ConvAttributes>(Extents{}, Extents{}, Extents{}, int64_t{1}, "SAME")),
            "relax-wrong-attribute");
  EXPECT_EQ(code({x, zeros(DType::int_(8), {6, 4, 3, 3})}, {}), "relax-dtype-mismatch");
  EXPECT_EQ(code({zeros(DType::float32(), {1, 4}), kernel}, {}), "relax-wrong-rank");
}

TEST(pack, lays_lanes_side_by_side) {
  const Array kernel = random_array(DType::float32(), {5, 2, 3, 2}, 1);
  const Array packed = run(pack_kernel, {kernel}, make<PackAttributes>(int64_t{4}))[0];
  Array expected = zeros(DType::float32(), {2, 3, 2, 2, 4});
  for_each_index(expected.shape, [&](const Extents& i) {
    const int64_t channel = i[0] * 4 + i[4];
    if (channel < 5) expected.at(i) = kernel.at({channel, i[3], i[1], i[2]});
  });
  EXPECT_TRUE(close(packed, expected, 0));
  EXPECT_EQ(refusal(pack_kernel, {kernel}, make<PackAttributes>(int64_t{0}))[0].code, relax::codes::wrong_attribute);
  EXPECT_EQ(refusal(pack_matrix, {random_array(DType::float32(), {5}, 1)})[0].code, relax::codes::wrong_rank);
}

}  // namespace conv_test
}  // namespace lathe::ops::testing
