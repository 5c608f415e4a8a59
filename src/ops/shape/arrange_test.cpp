#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace arrange_test {

using ir::make;

TEST(permute_dims, moves_axes) {
  for (const auto& axes :
       std::vector<std::optional<Extents>>{std::nullopt, Extents{0, 1, 2}, Extents{2, 0, 1}, Extents{-2, -1, 0}})
    for (const Extents& shape : std::vector<Extents>{{2, 3, 5}, {1, 4, 1}, {0, 2, 3}}) {
      const Array x = random_array(DType::float32(), shape, 1);
      Extents order;
      for (size_t d = 0; d < 3; ++d) order.push_back(axes ? ((*axes)[d] + 3) % 3 : static_cast<int64_t>(2 - d));
      Array expected = zeros(x.dtype, {shape[static_cast<size_t>(order[0])], shape[static_cast<size_t>(order[1])],
                                       shape[static_cast<size_t>(order[2])]});
      for_each_index(expected.shape, [&](const Extents& i) {
        Extents from(3);
        for (size_t d = 0; d < 3; ++d) from[static_cast<size_t>(order[d])] = i[d];
        expected.at(i) = x.at(from);
      });
      EXPECT_TRUE(close(run(permute_dims, {x}, make<PermuteDimsAttributes>(axes))[0], expected, 0));
    }
  const Array x = zeros(DType::float32(), {2, 3});
  EXPECT_EQ(refusal(permute_dims, {x}, make<PermuteDimsAttributes>(std::optional(Extents{0})))[0].code,
            relax::codes::wrong_attribute);
  EXPECT_EQ(refusal(permute_dims, {x}, make<PermuteDimsAttributes>(std::optional(Extents{0, 0})))[0].code,
            relax::codes::axis_out_of_range);
}

TEST(broadcast_to, repeats_dimensions_of_one) {
  for (const auto& [from, to] : std::vector<std::pair<Extents, Extents>>{
           {{3, 1}, {2, 3, 4}}, {{}, {5}}, {{4}, {4}}, {{1}, {0}}, {{2, 1}, {2, 0}}}) {
    const Array x = random_array(DType::int_(32), from, 1);
    EXPECT_TRUE(close(run(broadcast_to, {x, to})[0], map(x.dtype, to, {x}, [](const auto& v) { return v[0]; })));
  }
  const auto failed = refusal(broadcast_to, {zeros(DType::float32(), {3}), Extents{2}});
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].code, relax::codes::cannot_broadcast);
  EXPECT_FALSE(refusal(broadcast_to, {zeros(DType::float32(), {3}), Extents{1}}).empty());
}

TEST(tile, repeats_the_tensor) {
  for (const auto& [shape, repeats] : std::vector<std::pair<Extents, Extents>>{
           {{2, 3}, {2, 3}}, {{2, 3}, {1, 1}}, {{3}, {2, 2}}, {{2, 3}, {4}}, {{2, 3}, {0, 2}}, {{}, {3}}}) {
    const Array x = random_array(DType::float32(), shape, 1);
    Extents out(std::max(shape.size(), repeats.size()), 1);
    for (size_t d = 0; d < shape.size(); ++d) out[out.size() - shape.size() + d] = shape[d];
    for (size_t d = 0; d < repeats.size(); ++d) out[out.size() - repeats.size() + d] *= repeats[d];
    Array expected = zeros(x.dtype, out);
    for_each_index(out, [&](const Extents& i) {
      Extents from;
      for (size_t d = 0; d < shape.size(); ++d) from.push_back(i[out.size() - shape.size() + d] % shape[d]);
      expected.at(i) = x.at(from);
    });
    EXPECT_TRUE(close(run(tile, {x, repeats})[0], expected, 0));
  }
  EXPECT_EQ(refusal(tile, {zeros(DType::float32(), {3}), Extents{-1}})[0].code, relax::codes::wrong_attribute);
}

// Where NumPy's mode takes position `i` (which may lie outside) of `extent` elements from; -1: from no element.
int64_t source_of(int64_t i, int64_t extent, const std::string& mode) {
  if (mode == "constant") return i >= 0 && i < extent ? i : -1;
  if (mode == "edge") return std::clamp<int64_t>(i, 0, extent - 1);
  if (mode == "wrap") return ((i % extent) + extent) % extent;
  int64_t step = i < 0 ? -1 : 1, at = 0;  // walk back and forth
  if (extent == 1) return 0;
  for (int64_t k = 0; k != i; k += step) {
    const int64_t direction = ((k / (extent - 1)) % 2 == 0) ? 1 : -1;
    at += direction;
  }
  return std::llabs(at);
}

TEST(pad, fills_by_every_mode) {
  struct Case {
    Extents shape, before, after;
  };
  for (const Case& c : std::vector<Case>{{{3, 4}, {1, 2}, {2, 0}},
                                         {{3, 4}, {0, 0}, {0, 0}},
                                         {{2, 5}, {4, -1}, {3, -2}},
                                         {{1, 3}, {2, 0}, {3, 2}},
                                         {{4}, {7}, {9}}})
    for (const std::string mode : {"constant", "reflect", "edge", "wrap"})
      for (const DType dtype : {DType::float32(), DType::int_(64), DType::boolean(), DType::float_(16)}) {
        const Array x = random_array(dtype, c.shape, 1), value = array(dtype, {}, {1});
        Extents out;
        for (size_t d = 0; d < c.shape.size(); ++d) out.push_back(c.shape[d] + c.before[d] + c.after[d]);
        Array expected = zeros(dtype, out);
        for_each_index(out, [&](const Extents& i) {
          Extents from;
          for (size_t d = 0; d < out.size(); ++d) from.push_back(source_of(i[d] - c.before[d], c.shape[d], mode));
          const bool outside = std::any_of(from.begin(), from.end(), [](int64_t f) { return f < 0; });
          expected.at(i) = outside ? 1 : x.at(from);
        });
        EXPECT_TRUE(close(run(pad, {x, c.before, c.after, value}, make<PadAttributes>(mode), {.symbolic = false})[0],
                          expected, 0))
            << mode;
      }
}

TEST(pad, fills_with_zero_where_no_value_is_given) {
  const Array x = array(DType::float32(), {2}, {5, 6});
  EXPECT_TRUE(close(run(pad, {x, Extents{1}, Extents{1}})[0], array(DType::float32(), {4}, {0, 5, 6, 0})));
  const Array empty = zeros(DType::float32(), {0});
  EXPECT_TRUE(close(run(pad, {empty, Extents{1}, Extents{1}})[0], array(DType::float32(), {2}, {0, 0})));
}

TEST(pad, refuses_what_does_not_fit) {
  const Array x = zeros(DType::float32(), {2});
  EXPECT_EQ(refusal(pad, {x, Extents{1, 1}, Extents{1}})[0].code, relax::codes::wrong_arguments);
  EXPECT_EQ(refusal(pad, {x, Extents{-3}, Extents{0}})[0].code, relax::codes::shape_mismatch);
  EXPECT_EQ(refusal(pad, {x, Extents{1}, Extents{1}, x})[0].code, relax::codes::wrong_rank);
  EXPECT_EQ(refusal(pad, {x, Extents{1}, Extents{1}, zeros(DType::int_(8), {})})[0].code, relax::codes::dtype_mismatch);
  EXPECT_EQ(refusal(pad, {x, Extents{1}, Extents{1}}, make<PadAttributes>("mirror"))[0].code,
            relax::codes::wrong_attribute);
  EXPECT_EQ(refusal(pad, {zeros(DType::float32(), {0}), Extents{1}, Extents{1}}, make<PadAttributes>("edge"))[0].code,
            relax::codes::shape_mismatch);
}

}  // namespace arrange_test
}  // namespace lathe::ops::testing
