#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace layout_transform_test {

using ir::make;

struct Case {
  std::string map;
  Extents shape, result;
  std::function<Extents(const Extents&)> place;
  bool symbolic = true;  // whether symbols as extents give the same
};

TEST(layout_transform, puts_elements_where_the_map_says) {
  for (const Case& c : std::vector<Case>{
           {"lambda i, j: (j, i)", {3, 5}, {5, 3}, [](const Extents& i) { return Extents{i[1], i[0]}; }},
           {"lambda i: (i // 4, i % 4)", {12}, {3, 4}, [](const Extents& i) { return Extents{i[0] / 4, i[0] % 4}; }},
           {"lambda i: (i // 4, i % 4)", {10}, {3, 4}, [](const Extents& i) { return Extents{i[0] / 4, i[0] % 4}; }},
           {"lambda i: (i // 4, i % 4)", {0}, {0, 4}, [](const Extents& i) { return Extents{i[0] / 4, i[0] % 4}; }},
           {"lambda n, c, h: (n, c // 16, h, c % 16)",
            {2, 3, 5},
            {2, 1, 5, 3},
            [](const Extents& i) { return Extents{i[0], i[1] / 16, i[2], i[1] % 16}; },
            false},
           {"lambda n, c, h: (n, c // 2, h, c % 2)",
            {2, 3, 5},
            {2, 2, 5, 2},
            [](const Extents& i) { return Extents{i[0], i[1] / 2, i[2], i[1] % 2}; }},
           {"lambda i, j: (i * 5 + j,)",
            {3, 5},
            {15},
            [](const Extents& i) { return Extents{i[0] * 5 + i[1]}; },
            false},
           {"lambda i, j: (i * 7 + j,)",
            {3, 5},
            {19},
            [](const Extents& i) { return Extents{i[0] * 7 + i[1]}; },
            false}}) {
    const Array x = random_array(DType::float32(), c.shape, 1);
    Array expected = zeros(x.dtype, c.result);
    for_each_index(c.result, [&](const Extents& i) { expected.at(i) = -3; });
    for_each_index(c.shape, [&](const Extents& i) { expected.at(c.place(i)) = x.at(i); });
    const auto attributes = make<LayoutTransformAttributes>(c.map, -3.0);
    EXPECT_TRUE(close(run(layout_transform, {x}, attributes, {.symbolic = c.symbolic})[0], expected, 0)) << c.map;
  }
}

TEST(layout_transform, refuses_what_is_no_layout) {
  const Array x = zeros(DType::float32(), {3, 5});
  for (const char* map : {"", "lambda i: (i,)", "lambda i, j: (i,)", "lambda i, j: (i, i)", "lambda i, j: (i + j,)",
                          "lambda i, j: (i * i, j)", "lambda i, j: (i - 1, j)", "lambda i, j: (k, j)"})
    EXPECT_FALSE(refusal(layout_transform, {x}, make<LayoutTransformAttributes>(std::string(map))).empty()) << map;
  const auto separated = make<LayoutTransformAttributes>(std::string("lambda i, j: (j, i)"), 0.0, Extents{2});
  EXPECT_EQ(refusal(layout_transform, {x}, separated)[0].code, relax::codes::wrong_attribute);
}

}  // namespace layout_transform_test
}  // namespace lathe::ops::testing
