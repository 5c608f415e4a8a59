#include <gtest/gtest.h>

#include "schedule/rules/nest/work.h"
#include "schedule/rules/rules.h"
#include "schedule/testing/programs.h"
#include "schedule/testing/rule_check.h"

namespace lathe::schedule {
namespace {

using testing::Builder;
using testing::ConvShape;
using testing::last_remarks;
using testing::machine;
using testing::machines;
using testing::scheduled;

TEST(pool, tiles_depthwise_convolutions) {
  for (const int64_t width : {5, 14, 23, 32})
    for (const int64_t stride : {1, 2}) {
      const ConvShape shape{1, 3, 6, width, 3, 3, stride, 1, 0, true, true};
      EXPECT_EQ(scheduled(testing::conv2d(shape), machine(512, 32)), "pool")
          << width << ", stride " << stride << last_remarks;
    }
}

// A padded depthwise convolution of planes whose padding is kept: of one piece, of several, with rests.
TEST(pool, pads_images_piece_by_piece) {
  struct Case {
    int64_t batch, height, width, kernel, stride, pieces;
  };
  for (const auto& [bits, registers] : machines)
    for (const Case& c : std::vector<Case>{{1, 16, 35, 3, 1, 2},
                                           {2, 16, 18, 3, 1, 1},
                                           {1, 33, 17, 3, 2, 2},
                                           {1, 23, 16, 7, 1, 1},
                                           {2, 1, 5, 3, 1, 1},
                                           {1, 32, 1, 3, 1, 4},
                                           {1, 24, 13, 5, 3, 2}})
      for (const bool epilogue : {true, false}) {
        const ConvShape shape{c.batch, 3, c.height, c.width, 3, c.kernel, c.stride, c.kernel / 2, 0, epilogue, true};
        const std::map<std::string, int64_t> decisions{{"pool.rows", 4}, {"pool.pieces", c.pieces}};
        const std::string taken = scheduled(testing::conv2d(shape), machine(bits, registers), 1e-5, {}, decisions);
        EXPECT_TRUE(taken == "pool" || c.width == 1) << taken << " of " << c.height << "x" << c.width << last_remarks;
      }
}

// The memory of a padded image is as large as what is padded at a time.
TEST(pool, keeps_the_padded_piece_near) {
  AnalyticDecider decider;
  const ConvShape shape{1, 3, 112, 112, 3, 3, 1, 1, 0, true, true};
  const Schedule done =
      schedule_function(Schedule::create(testing::conv2d(shape)).value_or_throw(), machine(512, 32), decider, {});
  const std::vector<Work> list = works(done.function());
  const Work* padding = find(list, "pad");
  ASSERT_NE(padding, nullptr);
  ASSERT_GE(padding->loops.size(), 3U);
  EXPECT_LE(constant_product({padding->loops.end() - 3, padding->loops.end()}).value_or(1 << 30), 114 * 114 / 4);
}

TEST(pool, takes_reductions_over_outer_axes) {
  for (const int64_t columns : {1, 7, 16, 40}) {
    Builder b;
    const Buffer x = b.input("X", {int64(6), int64(columns)}), y = b.output("Y", {int64(columns)});
    b.sum("sum", y, {{"k", int64(6)}}, [&](const std::vector<Expr>& i) { return load(x, {i[1], i[0]}); });
    EXPECT_EQ(scheduled(b.build(), machine(256, 16)), "pool") << columns << last_remarks;
  }
}

// As a transposed convolution over three dimensions has them, when nothing is known of its sizes.
TEST(pool, takes_sums_over_many_symbols) {
  std::vector<Var> symbols;
  std::map<std::string, int64_t> sizes;
  std::vector<Expr> shape;
  std::vector<testing::Axis> axes;
  for (const std::string name : {"a", "b", "c", "d"}) {
    symbols.push_back(size_var(name));
    sizes[name] = 2;
    shape.push_back(symbols.back());
    axes.push_back({"k" + name, symbols.back()});
  }
  shape.push_back(int64(16));
  Builder b;
  const Buffer x = b.input("X", shape), y = b.output("Y", {int64(16)});
  b.sum("sum", y, axes, [&](const std::vector<Expr>& i) { return load(x, {i[1], i[2], i[3], i[4], i[0]}); });
  EXPECT_EQ(scheduled(b.build(symbols), machine(256, 16), 1e-5, sizes), "pool") << last_remarks;
}

// A padded depthwise convolution, channels last.
Function depthwise_last(int64_t height, int64_t width, int64_t channels, int64_t kernel, int64_t stride) {
  const int64_t padding = kernel / 2, down = (height - 1) / stride + 1, across = (width - 1) / stride + 1;
  Builder b;
  const Buffer x = b.input("X", {int64(height), int64(width), int64(channels)}),
               w = b.input("W", {int64(kernel), int64(kernel), int64(channels)});
  const Buffer padded = b.inner("P", {int64(height + 2 * padding), int64(width + 2 * padding), int64(channels)}),
               y = b.output("Y", {int64(down), int64(across), int64(channels)});
  b.compute("pad", padded, [&](const std::vector<Expr>& i) {
    const auto inside = [&](const Expr& at, int64_t extent) {
      return logical_and(at >= padding, at < extent + padding);
    };
    return if_then_else(logical_and(inside(i[0], height), inside(i[1], width)),
                        load(x, {i[0] - padding, i[1] - padding, i[2]}), testing::f32(0));
  });
  b.sum("conv", y, {{"kh", int64(kernel)}, {"kw", int64(kernel)}}, [&](const std::vector<Expr>& i) {
    return load(padded, {i[0] * stride + i[3], i[1] * stride + i[4], i[2]}) * load(w, {i[3], i[4], i[2]});
  });
  return b.build();
}

TEST(pool, copies_the_image_that_wide_windows_pad) {
  const auto pads = [](int64_t kernel) {
    AnalyticDecider decider;
    const Schedule done = schedule_function(Schedule::create(depthwise_last(9, 11, 32, kernel, 1)).value_or_throw(),
                                            machine(512, 32), decider, {});
    return find(works(done.function()), "pad") != nullptr;
  };
  EXPECT_FALSE(pads(3)) << "the copy costs more";
  EXPECT_TRUE(pads(5));
  EXPECT_TRUE(pads(7));
  EXPECT_FALSE(pads(9)) << "more than are written out";
  for (const auto& [bits, registers] : machines)
    for (const auto& [height, width, channels, kernel, stride] : std::vector<std::array<int64_t, 5>>{{8, 9, 32, 3, 1},
                                                                                                     {9, 7, 24, 5, 2},
                                                                                                     {5, 13, 21, 7, 1},
                                                                                                     {1, 1, 16, 7, 1},
                                                                                                     {6, 6, 3, 3, 2},
                                                                                                     {10, 9, 17, 9, 1}})
      EXPECT_EQ(scheduled(depthwise_last(height, width, channels, kernel, stride), machine(bits, registers)), "pool")
          << height << "x" << width << "x" << channels << ", windows of " << kernel << last_remarks;
}

}  // namespace
}  // namespace lathe::schedule
