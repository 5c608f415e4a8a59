#include <gtest/gtest.h>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words

// What a convolution of 3x3 with that kernel knows of its border, its input padded by `value` if at all.
Extents border(const Expr& kernel, const Extents& padding, std::optional<double> value = std::nullopt,
               const std::string& layout = "NHWC") {
  Graph g;
  Expr x = g.input("x", Extents{1, 7, 6, 2});
  if (value)
    x = g.call(ops::pad, {x, shape({0, 2, 0, 0}), shape({0, 1, 1, 0}), filled({}, *value)},
               ir::make<ops::PadAttributes>());
  ops::ConvAttributes attributes;
  attributes.padding = padding;
  attributes.data_layout = layout;
  const auto before = g.finish(g.call(ops::conv, {x, kernel}, ir::with(attributes, [](ops::ConvAttributes&) {})));
  const auto after = mark_zero_borders(before, context()).value_or_throw();
  EXPECT_EQ(difference(before, after), "");
  return static_cast<const ops::ConvAttributes*>(find_call(after, "nn.conv")->attributes.get())->zero_border;
}

TEST(mark_zero_borders, makes_of_programs_what_its_text_expects) { expect_text(mark_zero_borders, __FILE__); }

TEST(mark_zero_borders, adds_its_own_padding_to_what_a_pad_puts_around) {
  const Expr kernel = weights({3, 2, 3, 3}, 1);
  EXPECT_EQ(border(kernel, {}), Extents{});
  EXPECT_EQ(border(kernel, {0, 0, 0, 0}), Extents{});
  EXPECT_EQ(border(kernel, {1, 0, 0, 2}), (Extents{1, 0, 0, 2}));
  EXPECT_EQ(border(kernel, {}, 0.0), (Extents{2, 0, 1, 1}));
  EXPECT_EQ(border(kernel, {1, 1, 1, 1}, 0.0), (Extents{3, 1, 2, 2}));
}

TEST(mark_zero_borders, takes_no_other_value_for_zeros) {
  EXPECT_EQ(border(weights({3, 2, 3, 3}, 1), {}, 1.0), Extents{});
  EXPECT_EQ(border(weights({3, 2, 3, 3}, 1), {0, 1, 0, 0}, 1.0), (Extents{0, 1, 0, 0}));
}

// Zero times infinity is NaN, which the sum has to become.
TEST(mark_zero_borders, keeps_products_with_what_is_not_finite) {
  for (const double value : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    std::vector<double> elements(54, 1);
    elements[53] = value;
    EXPECT_EQ(border(values({3, 2, 3, 3}, elements), {1, 1, 1, 1}), Extents{}) << value;
  }
  EXPECT_EQ(border(filled({3, 2, 3, 3}, std::numeric_limits<float>::max()), {1, 1, 1, 1}), (Extents{1, 1, 1, 1}));
  EXPECT_EQ(border(filled({3, 2, 3, 3}, -std::numeric_limits<float>::denorm_min()), {1, 1, 1, 1}),
            (Extents{1, 1, 1, 1}));
}

TEST(mark_zero_borders, asks_of_depthwise_windows_that_are_large) {
  const auto border = [](int64_t window) {
    Graph g;
    const Expr x = g.input("x", Extents{1, 9, 9, 4});
    ops::ConvAttributes how;
    how.padding = {1, 1, 2, 2}, how.groups = how.channels = 4, how.data_layout = "NHWC", how.kernel_layout = "OHWI4o";
    const Expr kernel = weights({1, window, window, 1, 4}, 1);
    const auto before = g.finish(g.call(ops::conv, {x, kernel}, ir::with(how, [](ops::ConvAttributes&) {})));
    const auto after = mark_zero_borders(before, context()).value_or_throw();
    EXPECT_EQ(difference(before, after), "");
    return static_cast<const ops::ConvAttributes*>(find_call(after, "nn.conv")->attributes.get())->zero_border;
  };
  EXPECT_EQ(border(7), (Extents{1, 1, 2, 2}));
  EXPECT_EQ(border(5), Extents{}) << "written out: nobody asks";
}

TEST(mark_zero_borders, does_not_believe_kernels_that_are_given_later) {
  Graph g;
  const Expr x = g.input("x", Extents{1, 7, 6, 2}), kernel = g.input("w", Extents{3, 2, 3, 3});
  ops::ConvAttributes attributes;
  attributes.padding = {1, 1, 1, 1};
  attributes.data_layout = "NHWC";
  const auto before = g.finish(g.call(ops::conv, {x, kernel}, ir::with(attributes, [](ops::ConvAttributes&) {})));
  const auto after = mark_zero_borders(before, context()).value_or_throw();
  EXPECT_TRUE(
      static_cast<const ops::ConvAttributes*>(find_call(after, "nn.conv")->attributes.get())->zero_border.empty());
}

}  // namespace
}  // namespace lathe::graph
