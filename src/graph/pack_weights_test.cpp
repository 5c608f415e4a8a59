#include <gtest/gtest.h>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words
using Names = std::vector<std::string>;

ir::IRModule packed(const ir::IRModule& module) {
  return fold_constants(for_four_lanes(pack_weights)(module, context()).value_or_throw(), context()).value_or_throw();
}

ir::IRModule product(int64_t k, int64_t n) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(k)});
  return g.finish(g.call(ops::matmul, {x, weights({k, n}, 1)}));
}

ir::IRModule convolution(int64_t channels, relax::AttributesRef attributes = {}, int64_t input_channels = 3) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(3), ir::int64(5), ir::int64(4)});
  return g.finish(g.call(ops::conv, {x, weights({channels, input_channels, 2, 3}, 1)}, std::move(attributes)));
}

const ir::TensorDataNode& weight_of(const ir::IRModule& module, std::string_view op) {
  const auto* call = find_call(module, op);
  support::require(call && call->args[1].is<relax::Constant>(), "the weight is not constant");
  return *call->args[1].as<relax::Constant>()->data;
}

TEST(pack_weights, makes_of_programs_what_its_text_expects) { expect_text(for_four_lanes(pack_weights), __FILE__); }

TEST(pack_weights, puts_side_by_side_what_one_of_few_channels_multiplies) {
  const auto attributes = ir::make<ops::ConvAttributes>();
  const auto last = ir::with(*attributes, [](ops::ConvAttributes& copy) {
    copy.data_layout = "NHWC";
    copy.out_layout = "NCHW";
  });
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(5), ir::int64(4), ir::int64(8)});
  const auto before = g.finish(g.call(ops::conv, {x, weights({2, 8, 2, 3}, 1)}, last));
  const auto after = packed(before);
  EXPECT_EQ(weight_of(after, "nn.conv").shape, (Extents{2, 2, 3, 8, 1}));
  EXPECT_EQ(difference(before, after, 1e-5), "");
}

TEST(pack_weights, puts_the_columns_of_a_product_in_padded_panels) {
  const auto before = product(3, 11);
  const auto after = packed(before);
  const auto& attrs = *static_cast<const ops::MatmulAttributes*>(find_call(after, "matmul")->attributes.get());
  EXPECT_EQ(attrs.b_layout, "NK8n");
  EXPECT_EQ(attrs.columns, 11);
  const auto& original = weight_of(before, "matmul");
  const auto& panels = weight_of(after, "matmul");
  ASSERT_EQ(panels.shape, (Extents{2, 3, 8}));
  for (int64_t panel = 0; panel < 2; ++panel)
    for (int64_t k = 0; k < 3; ++k)
      for (int64_t lane = 0; lane < 8; ++lane) {
        const int64_t column = panel * 8 + lane;
        EXPECT_EQ(ir::float_at(panels, (panel * 3 + k) * 8 + lane),
                  column < 11 ? ir::float_at(original, k * 11 + column) : 0.0);
      }
  EXPECT_EQ(difference(before, after, 1e-5), "");
}

TEST(pack_weights, packs_a_weight_once_for_all_that_use_it) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(9)}), weight = weights({9, 9}, 1);
  const Expr once = g.call(ops::matmul, {x, weight});
  const auto before = g.finish(g.call(ops::matmul, {g.call(ops::matmul, {once, weights({9, 9}, 2)}), weight}));
  const auto after = for_four_lanes(pack_weights)(before, context()).value_or_throw();
  EXPECT_EQ(calls(after), (Names{"nn.pack_matrix", "matmul", "nn.pack_matrix", "matmul", "matmul"}));
  EXPECT_EQ(difference(before, packed(before), 1e-5), "");
}

TEST(pack_weights, pads_the_channels_of_a_convolution) {
  const auto before = convolution(5);
  const auto after = packed(before);
  const auto& attrs = *static_cast<const ops::ConvAttributes*>(find_call(after, "nn.conv")->attributes.get());
  EXPECT_EQ(attrs.kernel_layout, "OHWI8o");
  EXPECT_EQ(attrs.channels, 5);
  const auto& original = weight_of(before, "nn.conv");
  const auto& panels = weight_of(after, "nn.conv");
  ASSERT_EQ(panels.shape, (Extents{1, 2, 3, 3, 8}));
  for (int64_t pixel = 0; pixel < 6; ++pixel)
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t o = 0; o < 8; ++o)
        EXPECT_EQ(ir::float_at(panels, (pixel * 3 + i) * 8 + o),
                  o < 5 ? ir::float_at(original, (o * 3 + i) * 6 + pixel) : 0.0);
  EXPECT_EQ(difference(before, after, 1e-5), "");
}

TEST(pack_weights, keeps_the_attributes_of_a_convolution) {
  const auto before = convolution(9, ir::make<ops::ConvAttributes>(Extents{2, 1}, Extents{1, 0, 0, 2}, Extents{1, 2}));
  const auto after = packed(before);
  EXPECT_EQ(weight_of(after, "nn.conv").shape, (Extents{2, 2, 3, 3, 8}));
  EXPECT_EQ(difference(before, after, 1e-5), "");
}

TEST(pack_weights, takes_one_vector_a_panel_where_columns_are_few) {
  const auto before = product(7, 3);
  const auto after = packed(before);
  EXPECT_EQ(weight_of(after, "matmul").shape, (Extents{1, 7, 4}));
  EXPECT_EQ(difference(before, after, 1e-5), "");
}

TEST(pack_weights, takes_three_vectors_a_panel_where_these_are_all_columns) {
  const auto before = product(7, 12);
  const auto after = packed(before);
  EXPECT_EQ(weight_of(after, "matmul").shape, (Extents{1, 7, 12}));
  EXPECT_EQ(difference(before, after, 1e-5), "");
  EXPECT_EQ(weight_of(packed(product(7, 20)), "matmul").shape, (Extents{3, 7, 8}));
}

TEST(pack_weights, does_not_pack_what_would_mostly_be_zeros) {
  EXPECT_EQ(weight_of(packed(product(7, 2)), "matmul").shape, (Extents{7, 2}));
  EXPECT_EQ(weight_of(packed(convolution(1)), "nn.conv").shape, (Extents{1, 3, 2, 3}));
}

TEST(pack_weights, takes_panels_of_half_a_vector_where_that_has_four_lanes) {
  target::Target target;
  target.vector_bits = 256;
  const auto packed_for = [&](const ir::IRModule& module) {
    const ir::IRModule after = pack_weights(module, target, context()).value_or_throw();
    const ir::IRModule folded = fold_constants(after, context()).value_or_throw();
    EXPECT_EQ(difference(module, folded, 1e-5), "");
    return folded;
  };
  EXPECT_EQ(weight_of(packed_for(product(7, 3)), "matmul").shape, (Extents{7, 3}));
  EXPECT_EQ(weight_of(packed_for(product(7, 4)), "matmul").shape, (Extents{1, 7, 4}));
  EXPECT_EQ(weight_of(packed_for(product(7, 5)), "matmul").shape, (Extents{1, 7, 8}));
  EXPECT_EQ(weight_of(packed_for(convolution(4)), "nn.conv").shape, (Extents{1, 2, 3, 3, 4}));
}

TEST(pack_weights, keeps_grouped_convolutions) {
  const auto grouped = ir::make<ops::ConvAttributes>(Extents{}, Extents{}, Extents{}, 3);
  EXPECT_EQ(weight_of(packed(convolution(9, grouped, 1)), "nn.conv").shape, (Extents{9, 1, 2, 3}));
}

TEST(pack_weights, gives_a_depthwise_convolution_one_panel_of_all_channels) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(5), ir::int64(4), ir::int64(6)});
  const auto depthwise = ir::make<ops::ConvAttributes>(Extents{2, 1}, Extents{}, Extents{}, 6, "NOTSET", "NHWC");
  const auto before = g.finish(g.call(ops::conv, {x, weights({6, 1, 3, 2}, 1)}, depthwise));
  const auto after = packed(before);
  EXPECT_EQ(weight_of(after, "nn.conv").shape, (Extents{1, 3, 2, 1, 6}));
  EXPECT_EQ(difference(before, after, 1e-5), "");
}

TEST(pack_weights, gives_each_group_a_panel) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(5), ir::int64(4), ir::int64(6)});
  const auto grouped = ir::make<ops::ConvAttributes>(Extents{2, 1}, Extents{}, Extents{}, 3, "NOTSET", "NHWC");
  const auto before = g.finish(g.call(ops::conv, {x, weights({15, 2, 3, 2}, 1)}, grouped));
  const auto after = packed(before);
  EXPECT_EQ(weight_of(after, "nn.conv").shape, (Extents{3, 3, 2, 2, 5}));
  EXPECT_EQ(difference(before, after, 1e-5), "");
}

TEST(pack_weights, keeps_weights_that_are_not_constant) {
  Graph g;
  const Expr x = g.input("x", Extents{3, 7});
  const Expr w = g.input("w", Extents{7, 9});
  const auto after = packed(g.finish(g.call(ops::matmul, {x, w})));
  EXPECT_EQ(calls(after), Names{"matmul"});
  EXPECT_TRUE(find_call(after, "matmul")->args[1].is<relax::VarNode>());
}

TEST(pack_weights, packs_once) {
  const auto once = packed(product(5, 9));
  EXPECT_TRUE(ir::structural_equal(packed(once), once));
}

}  // namespace
}  // namespace lathe::graph
