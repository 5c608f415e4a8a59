#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace join_test {

using ir::make;

TEST(concat, joins_along_any_axis) {
  for (const int64_t axis : {0, 1, -1, -3})
    for (const Extents& parts :
         std::vector<Extents>{{2, 3, 1}, {4}, {0, 5}, {1, 1}, {1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1, 1}})
      for (const DType dtype : {DType::float32(), DType::boolean(), DType::uint(8)}) {
        const auto a = static_cast<size_t>((axis + 3) % 3);
        std::vector<Argument> args;
        std::vector<Array> arrays;
        Extents shape{2, 3, 5};
        shape[a] = 0;
        for (size_t k = 0; k < parts.size(); ++k) {
          Extents own{2, 3, 5};
          own[a] = parts[k];
          shape[a] += parts[k];
          arrays.push_back(random_array(dtype, own, k + 1));
          args.emplace_back(arrays.back());
        }
        Array expected = zeros(dtype, shape);
        int64_t offset = 0;
        for (const Array& part : arrays) {
          for_each_index(part.shape, [&](const Extents& i) {
            Extents to = i;
            to[a] += offset;
            expected.at(to) = part.at(i);
          });
          offset += part.shape[a];
        }
        EXPECT_TRUE(close(run(concat, args, make<AxisAttributes>(axis))[0], expected, 0));
      }
}

TEST(concat, refuses_what_does_not_fit) {
  const auto f = [](Extents shape) { return zeros(DType::float32(), std::move(shape)); };
  EXPECT_EQ(refusal(concat, {f({2, 3}), f({3, 4})})[0].code, relax::codes::shape_mismatch);
  EXPECT_EQ(refusal(concat, {f({2, 3}), f({2})})[0].code, relax::codes::wrong_rank);
  EXPECT_EQ(refusal(concat, {f({2}), zeros(DType::int_(8), {2})})[0].code, relax::codes::dtype_mismatch);
  EXPECT_EQ(refusal(concat, {f({2})}, make<AxisAttributes>(int64_t{1}))[0].code, relax::codes::axis_out_of_range);
  EXPECT_EQ(refusal(concat, {})[0].code, relax::codes::wrong_arguments);
}

TEST(split, takes_apart_by_sizes_and_sections) {
  const Array x = random_array(DType::float32(), {2, 7, 3}, 1);
  const auto check = [&](int64_t axis, const Extents& sizes, int64_t sections, const Extents& expected_sizes) {
    const auto parts = run(split, {x}, make<SplitAttributes>(axis, sizes, sections), {.symbolic = sections > 0});
    ASSERT_EQ(parts.size(), expected_sizes.size());
    const auto a = static_cast<size_t>((axis + 3) % 3);
    int64_t offset = 0;
    for (size_t k = 0; k < parts.size(); ++k) {
      Extents shape = x.shape;
      shape[a] = expected_sizes[k];
      Array expected = zeros(x.dtype, shape);
      for_each_index(shape, [&](const Extents& i) {
        Extents from = i;
        from[a] += offset;
        expected.at(i) = x.at(from);
      });
      offset += shape[a];
      EXPECT_TRUE(close(parts[k], expected, 0));
    }
  };
  check(1, {2, 5}, 0, {2, 5});
  check(-2, {0, 1, 6}, 0, {0, 1, 6});
  check(1, {}, 3, {3, 3, 1});
  check(0, {}, 2, {1, 1});
  check(2, {}, 1, {3});
  check(0, {}, 3, {1, 1, 0});
  EXPECT_EQ(refusal(split, {x}, make<SplitAttributes>(int64_t{1}, Extents{2, 4}))[0].code,
            relax::codes::shape_mismatch);
  EXPECT_EQ(refusal(split, {x}, make<SplitAttributes>(int64_t{1}, Extents{8, -1}))[0].code,
            relax::codes::wrong_attribute);
  EXPECT_EQ(refusal(split, {x})[0].code, relax::codes::wrong_attribute);
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(refusal(split, {x}, make<SplitAttributes>(int64_t{1}, Extents{most, 1}))[0].message,
            "the parts of split add up to more than a tensor can have");
}

}  // namespace join_test
}  // namespace lathe::ops::testing
