#include <gtest/gtest.h>

#include "arith/analyzer.h"
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

// A padded depthwise convolution, channels last, of images of any size where that is of symbols.
Function depthwise_last(const Expr& height, const Expr& width, int64_t channels, int64_t kernel, int64_t stride,
                        const std::vector<Var>& symbols = {}) {
  const int64_t padding = kernel / 2;
  const auto windows = [&](const Expr& extent) {
    return arith::Analyzer().simplify(floordiv(extent - 1, int64(stride)) + 1);
  };
  const auto wide = [&](const Expr& extent) { return arith::Analyzer().simplify(extent + 2 * padding); };
  Builder b;
  const Buffer x = b.input("X", {height, width, int64(channels)}),
               w = b.input("W", {int64(kernel), int64(kernel), int64(channels)});
  const Buffer padded = b.inner("P", {wide(height), wide(width), int64(channels)}),
               y = b.output("Y", {windows(height), windows(width), int64(channels)});
  b.compute("pad", padded, [&](const std::vector<Expr>& i) {
    const auto inside = [&](const Expr& at, const Expr& extent) {
      return logical_and(at >= padding, at < arith::Analyzer().simplify(extent + padding));
    };
    return if_then_else(logical_and(inside(i[0], height), inside(i[1], width)),
                        load(x, {i[0] - padding, i[1] - padding, i[2]}), testing::f32(0));
  });
  b.sum("conv", y, {{"kh", int64(kernel)}, {"kw", int64(kernel)}}, [&](const std::vector<Expr>& i) {
    return load(padded, {i[0] * stride + i[3], i[1] * stride + i[4], i[2]}) * load(w, {i[3], i[4], i[2]});
  });
  return b.build(symbols);
}
Function depthwise_last(int64_t height, int64_t width, int64_t channels, int64_t kernel, int64_t stride) {
  return depthwise_last(int64(height), int64(width), channels, kernel, stride);
}

// Rows of any length: several neighbours have their sums at once, and what such tiles leave over is right.
TEST(pool, takes_neighbours_together_in_rows_of_any_length) {
  const Var h = size_var("h"), w = size_var("w");
  for (const auto& [channels, rows] : std::vector<std::pair<int64_t, const char*>>{{8, "rows=4"}, {24, "rows=2"}}) {
    EXPECT_EQ(testing::decided(depthwise_last(h, w, channels, 3, 2, {h, w}), machine(256, 16), "rows=", "rows="), rows);
    for (const int64_t stride : {1, 2})
      EXPECT_EQ(testing::scheduled_once(depthwise_last(h, w, channels, 3, stride, {h, w}), machine(256, 16), 1e-5,
                                        {{{"h", 1}, {"w", 1}}, {{"h", 3}, {"w", 4}}, {{"h", 2}, {"w", 13}}}),
                "pool")
          << channels << " channels, stride " << stride << last_remarks;
  }
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
  EXPECT_TRUE(pads(9));
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

// The blocks under the root.
std::vector<std::string> block_names(const Function& f, const target::Target& target) {
  AnalyticDecider decider;
  const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), target, decider, {});
  std::vector<std::string> names;
  for (const Work& work : works(done.function())) names.push_back(work.block().name);
  return names;
}

// Windows of `down` by `across` over an image that is larger than what they reach: products, or the largest element.
Function large_windows(int64_t height, int64_t width, int64_t channels, int64_t down, int64_t across, int64_t stride,
                       bool largest = false) {
  Builder b;
  const Buffer x = b.input("X", {int64(2), int64((height - 1) * stride + down), int64((width - 1) * stride + across),
                                 int64(channels)}),
               w = largest ? Buffer() : b.input("W", {int64(down), int64(across), int64(channels)}),
               y = b.output("Y", {int64(2), int64(height), int64(width), int64(channels)});
  const auto at = [&](const std::vector<Expr>& i) {
    return load(x, {i[0], i[1] * stride + i[4], i[2] * stride + i[5], i[3]});
  };
  const std::vector<testing::Axis> window{{"kh", int64(down)}, {"kw", int64(across)}};
  if (largest)
    b.max("largest", y, window, at);
  else
    b.sum("conv", y, window, [&](const std::vector<Expr>& i) { return at(i) * load(w, {i[4], i[5], i[3]}); });
  return b.build();
}

TEST(pool, writes_out_one_row_of_large_windows) {
  for (const auto& [bits, registers] : machines)
    for (const auto& [height, width, channels, down, across, stride] :
         std::vector<std::array<int64_t, 6>>{{4, 16, 32, 7, 7, 1},
                                             {3, 17, 16, 9, 5, 1},
                                             {2, 5, 19, 13, 3, 2},
                                             {1, 31, 33, 1, 41, 1},
                                             {2, 6, 4, 21, 21, 1},
                                             {2, 1, 16, 5, 11, 3}})
      for (const bool largest : {false, true})
        EXPECT_EQ(scheduled(large_windows(height, width, channels, down, across, stride, largest),
                            machine(bits, registers), 1e-4),
                  "pool")
            << height << "x" << width << "x" << channels << ", windows of " << down << "x" << across << last_remarks;
}

TEST(pool, copies_the_image_of_large_windows_in_pieces_that_are_enough_and_small) {
  using Names = std::vector<std::string>;
  target::Target target = machine(512, 32);
  const auto extents = [&](int64_t height, int64_t width, int64_t channels) {
    return testing::parallel_extents(large_windows(height, width, channels, 9, 9, 1), target);
  };
  const auto copies = [&](int64_t height, int64_t width, int64_t channels) {
    const Names names = block_names(large_windows(height, width, channels, 9, 9, 1), target);
    return std::count(names.begin(), names.end(), "X_global");
  };
  EXPECT_EQ(extents(14, 14, 64), std::vector<int64_t>{8}) << "two images, four vectors";
  EXPECT_EQ(copies(14, 14, 64), 1);
  EXPECT_EQ(extents(120, 120, 16), std::vector<int64_t>{10}) << "of 128x128 vectors a quarter fits: five pieces";
  target.cores = 16;
  EXPECT_EQ(extents(14, 14, 64), std::vector<int64_t>{16}) << "halves, for sixteen cores";
  EXPECT_EQ(extents(7, 16, 32), std::vector<int64_t>{28}) << "rows, as pieces would be too small";
  EXPECT_EQ(copies(7, 16, 32), 0);
}

// 3x3 windows over an image with channels last that needs no padding: products, or the largest element.
Function windows_last(int64_t down, int64_t across, int64_t channels, int64_t stride, bool largest) {
  Builder b;
  const Buffer x = b.input("X", {int64((down - 1) * stride + 3), int64((across - 1) * stride + 3), int64(channels)}),
               w = largest ? Buffer() : b.input("W", {int64(3), int64(3), int64(channels)}),
               y = b.output("Y", {int64(down), int64(across), int64(channels)});
  const auto at = [&](const std::vector<Expr>& i) {
    return load(x, {i[0] * stride + i[3], i[1] * stride + i[4], i[2]});
  };
  const std::vector<testing::Axis> window{{"kh", int64(3)}, {"kw", int64(3)}};
  if (largest)
    b.max("largest", y, window, at);
  else
    b.sum("conv", y, window, [&](const std::vector<Expr>& i) { return at(i) * load(w, {i[3], i[4], i[2]}); });
  return b.build();
}

TEST(pool, goes_down_the_rows_that_windows_share) {
  for (const auto& [bits, registers] : machines)
    for (const auto& [down, across, channels, stride] : std::vector<std::array<int64_t, 4>>{
             {14, 14, 32, 1}, {7, 7, 16, 1}, {9, 5, 40, 2}, {1, 9, 16, 1}, {5, 1, 8, 1}})
      for (const bool largest : {false, true})
        for (const int64_t tall : {0, 3}) {
          std::map<std::string, int64_t> decisions;  // the rule's own, or others
          if (tall > 0) decisions = {{"pool.tall", tall}, {"pool.across", 1}};
          const Function f = windows_last(down, across, channels, stride, largest);
          EXPECT_EQ(scheduled(f, machine(bits, registers), 1e-5, {}, decisions), "pool")
              << down << "x" << across << "x" << channels << ", stride " << stride << ", tall " << tall << last_remarks;
        }
}

TEST(pool, goes_down_where_registers_hold_what_windows_share) {
  const auto taken = [](const Function& f, const target::Target& target) {
    std::string choices;
    ir::PassContext context;
    context.on_remark = [&](const ir::Remark& remark) {
      if (remark.pass == "pool" && remark.taken) choices = remark.text;
    };
    AnalyticDecider decider;
    schedule_function(Schedule::create(f).value_or_throw(), target, decider, context);
    return choices.substr(choices.find("rows="));
  };
  EXPECT_EQ(taken(windows_last(28, 28, 64, 1, false), machine(512, 32)), "rows=4 tall=7 across=0")
      << "four tiles for two cores";
  EXPECT_EQ(taken(windows_last(28, 28, 64, 2, false), machine(512, 32)), "rows=2 tall=7 across=0")
      << "wider, less is shared";
  EXPECT_EQ(taken(windows_last(28, 28, 64, 1, true), machine(512, 32)), "rows=6 tall=7 across=0") << "no weights";
  EXPECT_EQ(taken(windows_last(28, 28, 64, 1, false), machine(256, 16)), "rows=4 tall=1 across=0") << "no room for two";
  EXPECT_EQ(taken(windows_last(8, 28, 64, 1, false), machine(512, 32)), "rows=4 tall=2 across=0")
      << "two for each core";
  EXPECT_EQ(taken(windows_last(14, 28, 64, 1, false), machine(512, 32)), "rows=4 tall=7 across=0")
      << "one for each core";
  EXPECT_EQ(taken(windows_last(7, 28, 64, 1, false), machine(512, 32)), "rows=7 tall=1 across=0")
      << "seven rows of four tiles";
  EXPECT_EQ(taken(windows_last(7, 7, 960, 1, false), machine(512, 32)), "rows=7 tall=1 across=1") << "shared vectors";
  target::Target alone = machine(512, 32);
  alone.cores = 1;
  EXPECT_EQ(taken(windows_last(7, 28, 64, 1, false), alone), "rows=4 tall=4 across=0");
  target::Target many = machine(512, 32);
  many.cores = 16;
  EXPECT_EQ(taken(windows_last(14, 14, 64, 1, false), many), "rows=7 tall=1 across=0") << "threads wait for tiles";
}

}  // namespace
}  // namespace lathe::schedule
