#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace reshape_test {

using ir::make;
using Axes = std::optional<Extents>;

TEST(reshape, keeps_the_order_of_elements) {
  const std::vector<std::pair<Extents, Extents>> shapes{{{2, 3, 4}, {6, 4}},
                                                        {{2, 3, 4}, {24}},
                                                        {{24}, {4, 1, 6}},
                                                        {{4, 6}, {3, 8}},
                                                        {{6, 4}, {4, 6}},
                                                        {{}, {1, 1}},
                                                        {{1}, {}},
                                                        {{0, 3}, {3, 0}},
                                                        {{2, 0}, {0, 5}},
                                                        {{2, 1, 3}, {2, 3}},
                                                        {{5, 2, 3}, {5, 3, 2}},
                                                        {{2, 3, 5, 7}, {6, 35}},
                                                        {{8, 9}, {2, 4, 3, 3}}};
  for (const auto& [from, to] : shapes)
    for (const DType dtype : {DType::float32(), DType::int_(64), DType::boolean(), DType::bfloat16()}) {
      const Array x = random_array(dtype, from, 1);
      EXPECT_TRUE(close(run(reshape, {x, to})[0], Array{dtype, to, x.values}, 0));
    }
}

TEST(reshape, computes_an_open_extent) {
  const Array x = random_array(DType::float32(), {4, 6}, 1);
  EXPECT_EQ(run(reshape, {x, Extents{3, -1}})[0].shape, (Extents{3, 8}));
  EXPECT_EQ(run(reshape, {x, Extents{-1}})[0].shape, (Extents{24}));
}

TEST(reshape, refuses_other_counts_of_elements) {
  const Array x = zeros(DType::float32(), {2, 3});
  const auto failed = refusal(reshape, {x, Extents{4}});
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].code, relax::codes::shape_mismatch);
  EXPECT_EQ(failed[0].message, "cannot reshape float32[2, 3] to [4]: 6 and 4 elements");
  EXPECT_EQ(refusal(reshape, {x, Extents{-1, 4}})[0].code, relax::codes::shape_mismatch);
  EXPECT_EQ(refusal(reshape, {x, Extents{-1, -1}})[0].code, relax::codes::wrong_attribute);
  EXPECT_EQ(refusal(reshape, {x, Extents{-1, 0}})[0].code, relax::codes::shape_mismatch);
  EXPECT_EQ(refusal(reshape, {x, x})[0].code, relax::codes::wrong_arguments);
}

TEST(expand_dims, inserts_dimensions_of_one) {
  const Array x = random_array(DType::float32(), {2, 3}, 1);
  const auto expanded = [&](Extents axes) {
    return run(expand_dims, {x}, make<AxesAttributes>(Axes(std::move(axes))))[0];
  };
  EXPECT_TRUE(close(expanded({0}), Array{x.dtype, {1, 2, 3}, x.values}, 0));
  EXPECT_TRUE(close(expanded({-1, 1}), Array{x.dtype, {2, 1, 3, 1}, x.values}, 0));
  EXPECT_TRUE(close(expanded({4, 0, 2}), Array{x.dtype, {1, 2, 1, 3, 1}, x.values}, 0));
  EXPECT_EQ(refusal(expand_dims, {x}, make<AxesAttributes>(Axes(Extents{3})))[0].code, relax::codes::axis_out_of_range);
}

TEST(squeeze, drops_dimensions_of_one) {
  const Array x = random_array(DType::float32(), {1, 2, 1, 3}, 1);
  const auto squeezed = [&](Axes axes) { return run(squeeze, {x}, make<AxesAttributes>(std::move(axes)))[0]; };
  EXPECT_TRUE(close(squeezed(std::nullopt), Array{x.dtype, {2, 3}, x.values}, 0));
  EXPECT_TRUE(close(squeezed(Extents{0}), Array{x.dtype, {2, 1, 3}, x.values}, 0));
  EXPECT_TRUE(close(squeezed(Extents{-2}), Array{x.dtype, {1, 2, 3}, x.values}, 0));
  EXPECT_EQ(refusal(squeeze, {x}, make<AxesAttributes>(Axes(Extents{1})))[0].code, relax::codes::shape_mismatch);
}

}  // namespace reshape_test
}  // namespace lathe::ops::testing
