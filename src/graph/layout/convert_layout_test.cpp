#include <gtest/gtest.h>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words
using Names = std::vector<std::string>;

ir::IRModule converted(const ir::IRModule& module) {
  return eliminate_dead_code(for_four_lanes(convert_layout)(module, context()).value_or_throw(), context())
      .value_or_throw();
}

Names names(const std::string& spaced) {
  std::istringstream words(spaced);
  return Names(std::istream_iterator<std::string>(words), {});
}

Expr image(Graph& g, int64_t channels = 3) {
  return g.input("x", {ir::size_var("n"), ir::int64(channels), ir::int64(5), ir::int64(4)});
}

Expr conv(Graph& g, const Expr& x, const Extents& kernel, const Extents& padding = {}, int64_t groups = 1) {
  const auto attributes = ir::make<ops::ConvAttributes>(Extents{}, padding, Extents{}, groups);
  return g.call(ops::conv, {x, weights(kernel, 1)}, attributes);
}

TEST(convert_layout, makes_of_programs_what_its_text_expects) { expect_text(for_four_lanes(convert_layout), __FILE__); }

TEST(convert_layout, gives_a_convolution_channels_last_and_its_result_back) {
  Graph g;
  const auto before = g.finish(conv(g, image(g, 6), {5, 6, 3, 3}, {1, 1, 1, 1}));
  const auto after = converted(before);
  EXPECT_EQ(calls(after), names("permute_dims nn.pad nn.conv permute_dims"));
  EXPECT_EQ(static_cast<const ops::ConvAttributes*>(find_call(after, "nn.conv")->attributes.get())->data_layout,
            "NHWC");
  EXPECT_EQ(difference(before, after, 1e-5), "");
}

TEST(convert_layout, reads_a_few_channels_as_they_lie) {
  Graph g;
  const auto before = g.finish(conv(g, image(g), {5, 3, 3, 3}, {1, 0, 1, 1}));
  const auto after = converted(before);
  EXPECT_EQ(calls(after), names("nn.conv permute_dims"));
  EXPECT_EQ(difference(before, after, 1e-5), "");
}

TEST(convert_layout, reads_groups_as_they_lie) {
  Graph g;
  const auto before = g.finish(conv(g, image(g, 6), {8, 3, 3, 2}, {1, 0, 1, 1}, 2));
  const auto after = converted(before);
  EXPECT_EQ(calls(after), names("nn.conv permute_dims"));
  EXPECT_EQ(difference(before, after, 1e-5), "");
}

TEST(convert_layout, keeps_a_depthwise_convolution_that_stands_alone) {
  Graph alone;
  const Expr y = alone.call(ops::relu, {conv(alone, image(alone, 8), {8, 1, 3, 3}, {1, 1, 1, 1}, 8)});
  const auto before = alone.finish(conv(alone, y, {8, 1, 2, 2}, {1, 0, 1, 0}, 8));
  EXPECT_TRUE(ir::structural_equal(converted(before), before)) << "two, one after the other";
  Graph g;
  const Expr wanted = g.call(ops::relu, {conv(g, image(g, 8), {8, 1, 3, 3}, {1, 1, 1, 1}, 8)});
  const auto followed = g.finish(conv(g, wanted, {5, 8, 2, 2}));
  EXPECT_EQ(calls(converted(followed)), names("permute_dims nn.conv nn.relu nn.conv permute_dims"));
  EXPECT_EQ(difference(followed, converted(followed), 1e-4), "");
  Graph narrow;
  const auto mostly_empty =
      narrow.finish(conv(narrow, narrow.input("x", Extents{1, 8, 9, 1}), {8, 1, 3, 1}, {1, 0, 1, 0}, 8));
  EXPECT_EQ(calls(converted(mostly_empty)), names("permute_dims nn.conv permute_dims"));
}

TEST(convert_layout, makes_a_pointwise_convolution_a_product) {
  Graph g;
  const auto before = g.finish(conv(g, image(g), {7, 3, 1, 1}));
  const auto after = converted(before);
  EXPECT_EQ(find_call(after, "nn.conv"), nullptr);
  EXPECT_NE(find_call(after, "matmul"), nullptr);
  EXPECT_EQ(difference(before, after, 1e-5), "");
}

TEST(convert_layout, multiplies_the_planes_of_an_image_where_a_pointwise_convolution_stands_alone) {
  for (const int64_t channels : {3, 20}) {
    Graph g;
    Expr y = conv(g, image(g, channels), {7, channels, 1, 1});
    y = g.call(ops::relu, {g.call(ops::add, {y, weights({7, 1, 1}, 2)})});
    const auto before = g.finish(g.call(ops::multiply, {g.call(ops::add, {y, y}), weights({5, 4}, 3)}));
    Names all = calls(converted(before));
    std::erase(all, "reshape");
    EXPECT_EQ(all, names("matmul add nn.relu add multiply")) << channels;
    EXPECT_EQ(difference(before, converted(before), 1e-5), "") << channels;
  }
  const auto transposes = [](const ir::IRModule& before) {
    const Names all = calls(converted(before));
    return std::count(all.begin(), all.end(), "permute_dims");
  };
  Graph many, followed, unknown;
  EXPECT_EQ(transposes(many.finish(conv(many, image(many, 21), {7, 21, 1, 1}))), 3) << "more channels than pixels";
  EXPECT_EQ(transposes(followed.finish(conv(followed, conv(followed, image(followed), {7, 3, 1, 1}), {5, 7, 2, 2}))),
            3);
  const Expr x = unknown.input("x", {ir::int64(1), ir::int64(3), ir::size_var("h"), ir::int64(4)});
  EXPECT_EQ(transposes(unknown.finish(conv(unknown, x, {7, 3, 1, 1}))), 3) << "pixels that only the run counts";
}

TEST(convert_layout, multiplies_the_planes_of_the_pixels_that_strides_meet) {
  for (const Extents& strides : std::vector<Extents>{{2, 2}, {1, 3}, {3, 1}}) {
    Graph g;
    const Expr x = g.input("x", Extents{2, 3, 9, 7});
    const auto before =
        g.finish(g.call(ops::conv, {x, weights({4, 3, 1, 1}, 1)}, ir::make<ops::ConvAttributes>(strides)));
    Names all = calls(converted(before));
    std::erase(all, "reshape");
    EXPECT_EQ(all, names("strided_slice matmul"));
    EXPECT_EQ(difference(before, converted(before), 1e-5), "");
  }
  const auto is_sliced = [](int64_t channels, Extents padding) {
    Graph g;
    const Expr x = g.input("x", Extents{2, channels, 9, 7});
    const auto before = g.finish(
        g.call(ops::conv, {x, weights({4, channels, 1, 1}, 1)}, ir::make<ops::ConvAttributes>(Extents{2, 2}, padding)));
    EXPECT_EQ(difference(before, converted(before), 1e-4), "");
    return find_call(converted(before), "strided_slice") != nullptr;
  };
  EXPECT_TRUE(is_sliced(20, {}));
  EXPECT_FALSE(is_sliced(21, {})) << "more channels than pixels that are met";
  EXPECT_FALSE(is_sliced(3, {0, 1, 0, 1}));
}

TEST(convert_layout, converts_nothing_between_convolutions) {
  Graph g;
  Expr y = conv(g, image(g), {8, 3, 3, 3}, {1, 1, 1, 1});
  y = g.call(ops::relu, {g.call(ops::add, {y, weights({8, 1, 1}, 2)})});
  const Expr skip = y;
  y = g.call(ops::relu, {conv(g, y, {8, 1, 3, 3}, {1, 1, 1, 1}, 8)});
  y = g.call(ops::add, {conv(g, y, {8, 8, 1, 1}), skip});
  const auto before = g.finish(conv(g, y, {5, 8, 2, 2}));
  const auto after = converted(before);
  const Names all = calls(after);
  EXPECT_EQ(std::count(all.begin(), all.end(), "permute_dims"), 2) << "the matrix and the result";
  EXPECT_EQ(difference(before, after, 1e-4), "");
}

TEST(convert_layout, takes_pools_and_joins_along) {
  Graph g;
  const Expr y = g.call(ops::relu, {conv(g, image(g), {6, 3, 2, 2})});
  const auto pooled = g.call(ops::max_pool, {y}, ir::make<ops::PoolAttributes>(Extents{2, 2}));
  const Expr joined = g.call(ops::concat, {pooled, pooled}, ir::make<ops::AxisAttributes>(1));
  const auto before = g.finish(joined);
  EXPECT_EQ(calls(converted(before)), names("nn.conv nn.relu nn.max_pool concat permute_dims"));
  EXPECT_EQ(difference(before, converted(before), 1e-5), "");
}

TEST(convert_layout, takes_padding_along) {
  for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
    Graph g;
    const Expr x = g.input("x", {ir::int64(2), ir::int64(3), ir::int64(5), ir::int64(4)});
    const Expr y = g.call(ops::relu, {conv(g, x, {6, 3, 3, 3}, {1, 1, 1, 1})});
    const auto sides = [](int64_t channels, int64_t height, int64_t width) {
      return ir::make<relax::ShapeExpr>(
          std::vector<ir::Expr>{ir::int64(0), ir::int64(channels), ir::int64(height), ir::int64(width)});
    };
    const Expr wide = g.call(ops::pad, {y, sides(0, 1, 2), sides(1, 0, 3)}, ir::make<ops::PadAttributes>(mode));
    const auto before = g.finish(g.call(ops::relu, {wide}));
    EXPECT_EQ(calls(converted(before)), names("nn.conv nn.relu nn.pad nn.relu permute_dims")) << mode;
    EXPECT_EQ(difference(before, converted(before), 1e-5), "") << mode;
  }
}

TEST(convert_layout, takes_slices_and_parts_along) {
  for (const int64_t axis : {0, 1, 2, 3, -1, -3}) {
    Graph g;
    const Expr x = g.input("x", {ir::int64(3), ir::int64(3), ir::int64(5), ir::int64(4)});
    const Expr y = g.call(ops::relu, {conv(g, x, {6, 3, 3, 3}, {1, 1, 1, 1})});
    const auto ends = [](int64_t at) { return ir::make<relax::ShapeExpr>(std::vector<ir::Expr>{ir::int64(at)}); };
    const auto axes = ir::with(ops::StridedSliceAttributes{}, [&](auto& copy) { copy.axes = {axis}; });
    const Expr sliced = g.call(ops::strided_slice, {y, ends(1), ends(3)}, axes);
    const auto before = g.finish(g.call(ops::relu, {sliced}));
    EXPECT_EQ(calls(converted(before)), names("nn.conv nn.relu strided_slice nn.relu permute_dims")) << axis;
    EXPECT_EQ(difference(before, converted(before), 1e-5), "") << axis;
  }
  Graph g;
  const Expr y = g.call(ops::relu, {conv(g, image(g), {6, 3, 3, 3}, {1, 1, 1, 1})});
  const Expr parts = g.call(ops::split, {y}, ir::make<ops::SplitAttributes>(1, Extents{2, 4}));
  const auto part = [&](int64_t index) {
    return g.emit(relax::with_struct_info(relax::make<relax::TupleGetItem>(parts, index),
                                          parts->struct_info.as<relax::TupleStructInfo>()->items[index]));
  };
  const Expr first = part(0), second = part(1);
  const auto before = g.finish(g.call(ops::concat, {second, first}, ir::make<ops::AxisAttributes>(1)));
  EXPECT_EQ(calls(converted(before)), names("nn.conv nn.relu split item item concat permute_dims"));
  EXPECT_EQ(difference(before, converted(before), 1e-5), "");
}

// Four lanes: two channels fill no vector.
TEST(convert_layout, gives_few_planes_of_an_image_whose_channels_are_last) {
  const auto read = [](int64_t channels, int64_t results, bool twice) {
    Graph g;
    const Expr x = g.input("x", {ir::size_var("n"), ir::int64(3), ir::int64(5), ir::int64(4)});
    const Expr y = g.call(ops::relu, {conv(g, x, {channels, 3, 3, 3}, {1, 1, 1, 1})});
    const Expr last = conv(g, y, {results, channels, 3, 3}, {1, 0, 0, 1});
    const auto before = g.finish(twice ? g.call(ops::add, {last, g.call(ops::mean, {y})}) : last);
    EXPECT_EQ(difference(before, converted(before), 1e-5), "");
    return calls(converted(before));
  };
  EXPECT_EQ(read(8, 2, false), names("nn.conv nn.relu nn.pad nn.conv")) << "into its padding";
  EXPECT_EQ(read(8, 2, true), names("nn.conv nn.relu permute_dims nn.conv mean add")) << "it pads itself";
  EXPECT_EQ(read(8, 3, false), names("nn.conv nn.relu nn.pad nn.conv permute_dims")) << "enough for vectors";
  EXPECT_EQ(read(6, 2, false), names("nn.conv nn.relu permute_dims nn.conv")) << "six fill no vectors";
}

// Channels as axes of their own, these exchanged, and one axis again.
TEST(convert_layout, shuffles_channels_where_they_are) {
  const auto shuffled = [](const Extents& parts, const Extents& order, const Extents& result) {
    Graph g;
    const Expr x = g.input("x", {ir::int64(2), ir::int64(3), ir::int64(5), ir::int64(4)});
    const Expr y = g.call(ops::relu, {conv(g, x, {12, 3, 3, 3}, {1, 1, 1, 1})});
    const auto shape = [](const Extents& extents) {
      std::vector<ir::Expr> dims;
      for (const int64_t extent : extents) dims.push_back(ir::int64(extent));
      return ir::make<relax::ShapeExpr>(std::move(dims));
    };
    const Expr parted = g.call(ops::reshape, {y, shape(parts)});
    const Expr exchanged = g.call(ops::permute_dims, {parted}, ir::make<ops::PermuteDimsAttributes>(order));
    const auto before = g.finish(g.call(ops::relu, {g.call(ops::reshape, {exchanged, shape(result)})}));
    EXPECT_EQ(difference(before, converted(before), 1e-5), "");
    return calls(converted(before));
  };
  const Names stays = names("nn.conv nn.relu reshape permute_dims reshape nn.relu permute_dims");
  EXPECT_EQ(shuffled({2, 3, 4, 5, 4}, {0, 2, 1, 3, 4}, {2, 12, 5, 4}), stays);
  EXPECT_EQ(shuffled({2, 2, 3, 2, 5, 4}, {0, 3, 1, 2, 4, 5}, {2, 12, 5, 4}), stays);
  const Names returns = names("nn.conv nn.relu permute_dims reshape permute_dims reshape nn.relu");
  EXPECT_EQ(shuffled({2, 3, 4, 5, 4}, {0, 2, 1, 4, 3}, {2, 12, 4, 5}), returns) << "pixels move, too";
  EXPECT_EQ(shuffled({2, 3, 4, 4, 5}, {0, 2, 1, 3, 4}, {2, 12, 5, 4}), returns) << "other rows";
  EXPECT_EQ(shuffled({2, 3, 4, 5, 4}, {1, 2, 0, 3, 4}, {2, 12, 5, 4}), returns) << "images move, too";
}

// Depth to space: channels go among the pixels, with the channels last where that is wanted so.
TEST(convert_layout, puts_channels_among_pixels_for_what_reads_them_last) {
  const auto shuffled = [](const Extents& parts, const Extents& order, int64_t results, const ir::Expr& height) {
    Graph g;
    const Expr x = g.input("x", {ir::int64(2), ir::int64(3), height, ir::int64(4)});
    const auto shape = [&](const Extents& extents) {
      std::vector<ir::Expr> dims{ir::int64(2)};
      for (const int64_t extent : extents) dims.push_back(extent == 0 ? height : ir::int64(extent));
      return dims;
    };
    const Expr y = conv(g, x, {16, 3, 3, 3}, {1, 1, 1, 1});
    const Expr parted = g.call(ops::reshape, {y, ir::make<relax::ShapeExpr>(shape(parts))});
    const Expr exchanged = g.call(ops::permute_dims, {parted}, ir::make<ops::PermuteDimsAttributes>(order));
    std::vector<ir::Expr> wide = shape({4, 0, 8});
    wide[2] = wide[2] * 2;
    const Expr image = g.call(ops::relu, {g.call(ops::reshape, {exchanged, ir::make<relax::ShapeExpr>(wide)})});
    const auto before = g.finish(results ? conv(g, image, {results, 4, 3, 3}, {1, 1, 1, 1}) : image);
    EXPECT_EQ(difference(before, converted(before), 1e-5), "");
    return calls(converted(before));
  };
  const ir::Expr five = ir::int64(5), any = ir::size_var("h");
  const Names last = names("nn.conv reshape permute_dims reshape nn.relu nn.conv");
  EXPECT_EQ(shuffled({4, 2, 2, 0, 4}, {0, 1, 4, 2, 5, 3}, 2, five), last);
  EXPECT_EQ(shuffled({2, 2, 4, 0, 4}, {0, 3, 4, 1, 5, 2}, 2, five), last) << "the other order of parts";
  EXPECT_EQ(shuffled({4, 2, 2, 0, 4}, {0, 1, 4, 2, 5, 3}, 2, any), last) << "rows of any number";
  EXPECT_EQ(shuffled({4, 2, 2, 0, 4}, {0, 1, 4, 2, 5, 3}, 0, five),
            names("nn.conv permute_dims reshape permute_dims reshape nn.relu"))
      << "nothing wants the channels last";
  EXPECT_EQ(shuffled({2, 2, 4, 0, 4}, {0, 3, 1, 4, 2, 5}, 0, five),
            names("nn.conv permute_dims reshape permute_dims reshape nn.relu"))
      << "parts before the pixels";
}

// What is wanted twice by what lies between two convolutions keeps none from writing into the second one's padding.
TEST(convert_layout, writes_a_product_with_its_own_sigmoid_into_padding) {
  const auto pads = [](bool kept) {
    Graph g;
    const Expr x = g.input("x", {ir::int64(1), ir::int64(3), ir::int64(5), ir::int64(4)});
    const Expr y = conv(g, x, {6, 3, 3, 3}, {1, 1, 1, 1});
    const Expr s = g.call(ops::sigmoid, {y});
    const Expr last = conv(g, g.call(ops::multiply, {y, s}), {6, 6, 3, 3}, {1, 1, 1, 1});
    const auto before = g.finish(kept ? g.call(ops::add, {last, s}) : last);
    EXPECT_EQ(difference(before, converted(before), 1e-5), "");
    const Names all = calls(converted(before));
    return std::count(all.begin(), all.end(), "nn.pad");
  };
  EXPECT_EQ(pads(false), 1);
  EXPECT_EQ(pads(true), 0) << "the sigmoid is wanted elsewhere";
}

// What turns an image for one convolution writes the padding around it.
TEST(convert_layout, turns_an_image_into_its_padding) {
  const auto all = [](bool are_two, int64_t groups) {
    Graph g;
    const Expr x = g.input("x", Extents{1, 8, 5, 4});
    const Expr y = conv(g, x, {8, 8 / groups, 3, 3}, {1, 1, 1, 1}, groups);
    const auto before = g.finish(are_two ? g.call(ops::add, {y, conv(g, x, {8, 8, 3, 3}, {1, 1, 1, 1})}) : y);
    EXPECT_EQ(difference(before, converted(before), 1e-5), "");
    return calls(converted(before));
  };
  EXPECT_EQ(all(false, 1), names("permute_dims nn.pad nn.conv permute_dims"));
  EXPECT_EQ(all(true, 1), names("permute_dims nn.conv nn.conv add permute_dims")) << "two read it";
  Graph known;
  const auto before = known.finish(conv(known, weights({1, 8, 5, 4}, 3), {8, 8, 3, 3}, {1, 1, 1, 1}));
  EXPECT_EQ(difference(before, converted(before), 1e-5), "") << "a constant image";
}

TEST(convert_layout, reads_the_single_pixel_of_a_mean_without_a_transposition) {
  Graph g;
  const Expr y = g.call(ops::relu, {conv(g, image(g), {6, 3, 2, 2})});
  const Expr mean = g.call(ops::mean, {y}, ir::make<ops::ReduceAttributes>(Extents{2, 3}, true));
  const auto before = g.finish(g.call(ops::squeeze, {mean}, ir::make<ops::AxesAttributes>(Extents{2, 3})));
  const auto after = converted(before);
  const Names all = calls(after);
  EXPECT_EQ(std::count(all.begin(), all.end(), "permute_dims"), 0);
  EXPECT_EQ(difference(before, after, 1e-5), "");
}

TEST(convert_layout, reduces_axes_where_they_went) {
  for (const Extents& axes : {Extents{1}, Extents{-1}, Extents{2}, Extents{0, 2}, Extents{2, 3}, Extents{-3, 3}})
    for (const bool keepdims : {true, false}) {
      Graph g;
      const Expr y = conv(g, image(g), {6, 3, 2, 2});
      const auto before = g.finish(g.call(ops::sum, {y}, ir::make<ops::ReduceAttributes>(axes, keepdims)));
      EXPECT_EQ(difference(before, converted(before), 1e-5), "") << axes[0] << keepdims;
    }
}

TEST(convert_layout, turns_what_is_left_of_an_image_where_an_axis_is_gone) {
  const std::map<int64_t, std::string> expected{
      {1, "nn.conv max"}, {2, "nn.conv max permute_dims"}, {3, "nn.conv max permute_dims"}};
  for (const auto& [axis, all] : expected) {
    Graph g;
    const Expr y = conv(g, image(g), {6, 3, 2, 2});
    const auto before = g.finish(g.call(ops::max, {y}, ir::make<ops::ReduceAttributes>(Extents{axis}, false)));
    EXPECT_EQ(calls(converted(before)), names(all)) << axis;
    EXPECT_EQ(difference(before, converted(before), 1e-5), "") << axis;
  }
}

// Six channels by themselves, or two or more of them together, with one number a group behind the normalisation.
TEST(convert_layout, normalises_groups_of_channels_where_they_lie) {
  for (const int64_t groups : {1, 2, 3, 6})
    for (const bool is_scaled : {false, true}) {
      Graph g;
      const Expr y = g.call(ops::relu, {conv(g, image(g), {6, 3, 2, 2})});
      const auto shaped = [&](const Expr& x, const std::vector<int64_t>& inner) {
        std::vector<ir::Expr> shape{as_tensor(y)->shape->front()};
        for (const int64_t extent : inner) shape.push_back(ir::int64(extent));
        return g.call(ops::reshape, {x, make<relax::ShapeExpr>(shape)});
      };
      Expr z = g.call(ops::layer_norm, {shaped(y, {groups, 6 / groups * 4 * 3})},
                      ir::make<ops::LayerNormAttributes>(Extents{2}, 0.01));
      if (is_scaled) {
        z = g.call(ops::multiply, {z, weights({groups, 1}, 5)});
        z = g.call(ops::add, {weights({1, 1, 1}, 6), z});
      }
      const auto before = g.finish(g.call(ops::tanh, {shaped(z, {6, 4, 3})}));
      const auto after = converted(before);
      const Names all = calls(after);
      EXPECT_EQ(std::count(all.begin(), all.end(), "permute_dims"), 1) << groups;
      EXPECT_EQ(difference(before, after, 1e-5), "") << groups << is_scaled;
    }
}

// What is no normalisation of whole groups stays with the channels first.
TEST(convert_layout, leaves_other_normalisations) {
  for (const Extents& axes : {Extents{1}, Extents{1, 2}, Extents{-1}, Extents{2, 3}, Extents{1, 2, 3}}) {
    Graph g;
    const Expr y = conv(g, image(g), {6, 3, 2, 2});
    const auto before = g.finish(g.call(ops::layer_norm, {y}, ir::make<ops::LayerNormAttributes>(axes, 0.01)));
    EXPECT_EQ(difference(before, converted(before), 1e-5), "") << axes[0] << ", " << axes.size();
  }
}

TEST(convert_layout, adds_operands_of_every_rank) {
  for (const Extents& operand : {Extents{}, Extents{4}, Extents{5, 1}, Extents{7, 1, 1}, Extents{1, 7, 5, 4},
                                 Extents{1, 1, 5, 1}, Extents{1, 7, 1, 1}}) {
    for (const int64_t window : {1, 3}) {
      Graph g;
      const Expr y = conv(g, image(g), {7, 3, window, window}, Extents(4, window / 2));
      const auto before = g.finish(g.call(ops::add, {weights(operand, 3), y}));
      EXPECT_EQ(difference(before, converted(before), 1e-5), "") << operand.size() << " " << window;
    }
  }
}

TEST(convert_layout, drops_a_transposition_that_the_model_makes_itself) {
  Graph g;
  const Expr y = conv(g, image(g), {7, 3, 2, 2});
  const auto before =
      g.finish(g.call(ops::permute_dims, {y}, ir::make<ops::PermuteDimsAttributes>(Extents{0, 2, 3, 1})));
  const auto after = converted(before);
  EXPECT_EQ(calls(after), names("nn.conv"));
  EXPECT_EQ(difference(before, after, 1e-5), "");
}

using Indices = std::vector<ir::Expr>;

// Rows and columns each so often; the channels in their order or the other way round.
Expr repeated(Graph& g, const Expr& x, int64_t times, bool reversed = false) {
  return g.builder()
      .call_te("repeated", {x},
               [&](const std::vector<te::Tensor>& in) {
                 Indices shape = in[0].shape();
                 for (size_t d = 2; d < shape.size(); ++d) shape[d] = shape[d] * times;
                 const ir::Expr last = shape[1] - 1;
                 return std::vector{te::compute(
                     shape,
                     [&](const Indices& i) {
                       Indices at{i[0], reversed ? last - i[1] : i[1]};
                       for (size_t d = 2; d < i.size(); ++d) at.push_back(ir::floordiv(i[d], ir::int64(times)));
                       return in[0](at);
                     },
                     in, "repeated")};
               })
      .value_or_throw();
}

// Sums of windows along the columns, as a reduction behind elementwise work.
Expr summed(Graph& g, const Expr& x, int64_t width) {
  return g.builder()
      .call_te("summed", {x},
               [&](const std::vector<te::Tensor>& in) {
                 const te::Tensor half = te::compute(
                     in[0].shape(), [&](const Indices& i) { return in[0](i) * ir::constant(in[0].dtype(), 0.5); }, in,
                     "half");
                 Indices shape = in[0].shape();
                 shape.back() = shape.back() - (width - 1);
                 const te::IterVar k = te::reduce_axis(ir::int64(0), ir::int64(width), "k");
                 return std::vector{te::compute(
                     shape,
                     [&](const Indices& i) {
                       Indices at = i;
                       at.back() = at.back() + k->var;
                       return te::sum(half(at), {k});
                     },
                     {half}, "summed")};
               })
      .value_or_throw();
}

TEST(convert_layout, turns_programs_that_carry_the_channels_through) {
  Graph g;
  const Expr a = conv(g, image(g, 6), {5, 6, 3, 3}, {1, 1, 1, 1});
  const Expr b = summed(g, repeated(g, a, 2), 3);
  const auto before = g.finish(conv(g, b, {7, 5, 2, 2}));
  const auto after = converted(before);
  EXPECT_EQ(calls(after), names("permute_dims nn.pad nn.conv call_tir call_tir nn.conv permute_dims"));
  EXPECT_EQ(difference(before, after, 1e-5), "");
}

TEST(convert_layout, turns_no_image_for_a_number_a_channel) {
  Graph g;
  const Expr x = g.input("x", Extents{2, 6, 5, 4});
  const Expr mean = g.call(ops::mean, {x}, ir::make<ops::ReduceAttributes>(std::vector<int64_t>{2, 3}, true));
  const auto before = g.finish(g.call(ops::multiply, {x, g.call(ops::sigmoid, {conv(g, mean, {6, 6, 1, 1})})}));
  const auto after = converted(before);
  const std::vector<std::string> all = calls(after);
  EXPECT_EQ(std::count(all.begin(), all.end(), "permute_dims"), 1) << "the matrix";
  EXPECT_EQ(difference(before, after, 1e-5), "");
}

TEST(convert_layout, turns_programs_between_the_model_s_own_transpositions) {
  const auto permuted = [](Graph& g, const Expr& x, std::vector<int64_t> axes) {
    return g.call(ops::permute_dims, {x}, ir::make<ops::PermuteDimsAttributes>(std::optional(std::move(axes))));
  };
  Graph g;
  const Expr x = g.input("x", Extents{2, 5, 4, 6});
  const auto before = g.finish(permuted(g, repeated(g, permuted(g, x, {0, 3, 1, 2}), 2), {0, 2, 3, 1}));
  const auto after = converted(before);
  EXPECT_EQ(calls(after), names("call_tir"));
  EXPECT_EQ(difference(before, after, 0), "");
}

TEST(convert_layout, turns_what_is_smaller_around_a_program_whose_result_is_not_wanted_so) {
  for (const auto& [times, expected] : std::vector<std::pair<int64_t, std::string>>{
           {3, "permute_dims nn.conv permute_dims call_tir"}, {1, "permute_dims nn.conv call_tir permute_dims"}}) {
    Graph g;
    const Expr x = g.input("x", Extents{2, 6, 5, 4});
    const auto before = g.finish(repeated(g, conv(g, x, {5, 6, 3, 3}), times));
    const auto after = converted(before);
    EXPECT_EQ(calls(after), names(expected)) << times;
    EXPECT_EQ(difference(before, after, 1e-5), "") << times;
  }
}

TEST(convert_layout, leaves_programs_that_mix_the_channels) {
  Graph g;
  const Expr a = repeated(g, conv(g, image(g, 6), {5, 6, 3, 3}), 2, true);
  const auto before = g.finish(conv(g, a, {7, 5, 2, 2}));
  const auto after = converted(before);
  EXPECT_EQ(calls(after), names("permute_dims nn.conv permute_dims call_tir permute_dims nn.conv permute_dims"));
  EXPECT_EQ(difference(before, after, 1e-5), "");
}

TEST(convert_layout, leaves_groups_few_channels_and_weights_that_are_not_known) {
  const auto unchanged = [](const ir::IRModule& module) { return ir::structural_equal(converted(module), module); };
  Graph groups;
  EXPECT_TRUE(unchanged(groups.finish(conv(groups, image(groups, 4), {8, 1, 3, 3}, {}, 4))))
      << "a multiplied depthwise";
  Graph small;
  EXPECT_TRUE(unchanged(small.finish(conv(small, image(small, 16), {8, 2, 3, 3}, {}, 8)))) << "groups of one output";
  Graph few;
  EXPECT_TRUE(unchanged(few.finish(conv(few, image(few), {2, 3, 3, 3}))));
  Graph unknown;
  const Expr x = image(unknown), w = unknown.input("w", Extents{8, 3, 2, 2});
  EXPECT_TRUE(unchanged(unknown.finish(unknown.call(ops::conv, {x, w}))));
}

}  // namespace
}  // namespace lathe::graph
