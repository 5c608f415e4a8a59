// What follows a product is put on its tiles, also where these do not divide the rows, and where a batch of one or a
// padding is around them: nothing between lies in memory.
#include <gtest/gtest.h>

#include "schedule/analysis/access.h"
#include "schedule/rules/nest/work.h"
#include "schedule/rules/rules.h"
#include "schedule/testing/random_program.h"
#include "schedule/testing/rule_check.h"

namespace lathe::schedule {
namespace {

using testing::Builder;
using testing::largest_allocation;
using testing::last_remarks;
using testing::machine;
using testing::machines;
using testing::scheduled;

struct Image {
  int64_t batch, height, width, channels;
  int64_t padding;  // around height and width of what follows
};

// A 1x1 convolution with channels last, a relu, and zeros around it where there is a padding; of symbols, if there are
// any.
Function convolved(const std::vector<Expr>& shape, int64_t padding, const std::vector<Var>& symbols = {}) {
  constexpr int64_t terms = 5;
  Builder b;
  const Buffer x = b.input("X", {shape[0], shape[1], shape[2], int64(terms)});
  const Buffer w = b.input("W", {int64(terms), shape[3]});
  const Buffer c = b.inner("C", shape), r = padding ? b.inner("R", shape) : b.output("R", shape);
  b.sum("conv", c, {{"k", int64(terms)}},
        [&](const std::vector<Expr>& i) { return load(x, {i[0], i[1], i[2], i[4]}) * load(w, {i[4], i[3]}); });
  // As broadcasting has it: where there is one, it is number 0.
  b.compute("relu", r, [&](const std::vector<Expr>& i) {
    return max(load(c, {is_int(shape[0], 1) ? int64(0) : i[0], i[1], i[2], i[3]}), testing::f32(0));
  });
  if (!padding) return b.build(symbols);
  const Buffer p = b.output("P", {shape[0], shape[1] + 2 * padding, shape[2] + 2 * padding, shape[3]});
  b.compute("pad", p, [&](const std::vector<Expr>& i) {
    const Expr row = i[1] - padding, column = i[2] - padding;
    const Expr inside = logical_and(logical_and(row >= 0, row < shape[1]), logical_and(column >= 0, column < shape[2]));
    return if_then_else(inside, load(r, {i[0], row, column, i[3]}), testing::f32(0));
  });
  return b.build(symbols);
}
Function convolved(const Image& s) {
  return convolved({int64(s.batch), int64(s.height), int64(s.width), int64(s.channels)}, s.padding);
}

// Buffers of the program, read by a block, that are neither parameters nor a tile's own.
std::set<std::string> between(const PrimFunc& f) {
  std::set<std::string> names;
  for (const Access& access : accesses(f.body)) {
    const Buffer& buffer = access.buffer;
    const bool own = buffer->scope == "register" || buffer->scope == "local";
    const bool given = std::any_of(f.buffer_map.begin(), f.buffer_map.end(),
                                   [&](const auto& entry) { return entry.second.same_as(buffer); });
    if (!own && !given && !access.writes) names.insert(buffer->name);
  }
  return names;
}

void expect_on_the_tile(const Function& f, int bits, int registers, const std::string& what) {
  EXPECT_NE(scheduled(f, machine(bits, registers)), "fallback") << last_remarks;
  AnalyticDecider decider;
  const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), machine(bits, registers), decider, {});
  EXPECT_EQ(between(done.function()), std::set<std::string>{}) << bits << " bits, " << what;
}

void expect_on_the_tile(const Image& s) {
  for (const auto& [bits, registers] : machines)
    expect_on_the_tile(convolved(s), bits, registers,
                       fmt::format("{}x{}x{}x{}, padding {}", s.batch, s.height, s.width, s.channels, s.padding));
}

// A convolution of two groups along one axis, and its bias.
Function grouped(int64_t batch, int64_t width, int64_t outputs) {
  constexpr int64_t groups = 2, inputs = 3, kernel = 3;
  Builder b;
  const Buffer x = b.input("X", {int64(batch), int64(width + kernel - 1), int64(groups * inputs)}),
               w = b.input("W", {int64(groups), int64(kernel), int64(inputs), int64(outputs)}),
               bias = b.input("bias", {int64(groups * outputs)});
  const std::vector<Expr> shape{int64(batch), int64(width), int64(groups * outputs)};
  const Buffer c = b.inner("C", shape), y = b.output("Y", shape);
  b.sum("conv", c, {{"rc", int64(inputs)}, {"k", int64(kernel)}}, [&](const std::vector<Expr>& i) {
    const Expr group = floordiv(i[2], int64(outputs));
    return load(x, {i[0], i[1] + i[4], group * inputs + i[3]}) *
           load(w, {group, i[4], i[3], floormod(i[2], int64(outputs))});
  });
  b.compute("add", y, [&](const std::vector<Expr>& i) { return load(c, i) + load(bias, {i[2]}); });
  return b.build();
}

// What the sums in registers start from: the tensors that the block reads which runs before they are added up.
std::set<std::string> starts_from(const Function& f, int bits, int registers) {
  AnalyticDecider decider;
  const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), machine(bits, registers), decider, {});
  std::set<std::string> names;
  for (const Access& access : accesses(done.function().body))
    if (access.block && !access.writes && access.block->name.ends_with("_init")) names.insert(access.buffer->name);
  return names;
}

// The sums of a product start from its bias, which the rows of a tile share, and not from a residual, which would have
// to be there first.
TEST(epilogue, adds_what_rows_share_first) {
  for (const auto& [bits, registers] : machines)
    for (const int64_t rows : {5, 64}) {
      Builder b;
      const std::vector<Expr> shape{int64(rows), int64(32)};
      const Buffer x = b.input("X", {int64(rows), int64(24)}), w = b.input("W", {int64(24), int64(32)}),
                   bias = b.input("bias", {int64(32)}), more = b.input("more", shape);
      const Buffer c = b.inner("C", shape), d = b.inner("D", shape), e = b.inner("E", shape), y = b.output("Y", shape);
      b.sum("product", c, {{"k", int64(24)}},
            [&](const std::vector<Expr>& i) { return load(x, {i[0], i[2]}) * load(w, {i[2], i[1]}); });
      b.compute("biased", d, [&](const std::vector<Expr>& i) { return load(c, i) + load(bias, {i[1]}); });
      b.compute("added", e, [&](const std::vector<Expr>& i) { return load(d, i) + load(more, i); });
      b.compute("relu", y, [&](const std::vector<Expr>& i) { return max(load(e, i), testing::f32(0)); });
      EXPECT_EQ(starts_from(b.build(), bits, registers), (std::set<std::string>{"bias"})) << bits << ", " << rows;
    }
  for (const auto& [bits, registers] : machines)
    EXPECT_EQ(starts_from(grouped(2, 17, 16), bits, registers), (std::set<std::string>{"bias"})) << bits;
}

TEST(epilogue, is_on_tiles_that_do_not_divide_the_rows) {
  for (const int64_t batch : {1, 2})
    for (const int64_t width : {7, 17, 30})
      for (const int64_t channels : {16, 24, 33}) expect_on_the_tile({batch, 3, width, channels, 0});
}

TEST(epilogue, is_on_tiles_inside_a_padding) {
  for (const int64_t batch : {1, 2})
    for (const int64_t width : {7, 17, 30})
      for (const int64_t channels : {16, 24}) expect_on_the_tile({batch, 3, width, channels, 1});
}

TEST(epilogue, is_on_tiles_of_groups) {
  for (const auto& [bits, registers] : machines)
    for (const int64_t batch : {1, 2})
      for (const int64_t width : {7, 31})
        for (const int64_t vectors : {1, 3}) {
          const int64_t outputs = vectors * bits / 32;
          expect_on_the_tile(grouped(batch, width, outputs), bits, registers,
                             fmt::format("{}x{}, groups of {}", batch, width, outputs));
        }
}

// A convolution of windows with channels last, a bias, and the result with the channels first.
Function turned(int64_t batch, int64_t height, int64_t width, int64_t channels, int64_t kernel) {
  constexpr int64_t terms = 3;
  Builder b;
  const Buffer x = b.input("X", {int64(batch), int64(height + kernel - 1), int64(width + kernel - 1), int64(terms)});
  const Buffer w = b.input("W", {int64(kernel), int64(kernel), int64(terms), int64(channels)});
  const Buffer bias = b.input("bias", {int64(channels)});
  const std::vector<Expr> shape{int64(batch), int64(height), int64(width), int64(channels)};
  const Buffer c = b.inner("C", shape), r = b.inner("R", shape),
               y = b.output("Y", {shape[0], shape[3], shape[1], shape[2]});
  b.sum("conv", c, {{"k0", int64(kernel)}, {"k1", int64(kernel)}, {"k", int64(terms)}},
        [&](const std::vector<Expr>& i) {
          return load(x, {i[0], i[1] + i[4], i[2] + i[5], i[6]}) * load(w, {i[4], i[5], i[6], i[3]});
        });
  b.compute("add", r, [&](const std::vector<Expr>& i) { return load(c, i) + load(bias, {i[3]}); });
  b.compute("permute", y, [&](const std::vector<Expr>& i) { return load(r, {i[0], i[2], i[3], i[1]}); });
  return b.build();
}

TEST(epilogue, turns_images_row_by_row) {
  for (const auto& [bits, registers] : machines)
    for (const auto& [batch, height, width, channels, kernel] :
         std::vector<std::array<int64_t, 5>>{{1, 6, 32, 32, 3},
                                             {1, 5, 17, 40, 3},
                                             {2, 4, 20, 21, 2},
                                             {1, 9, 7, 96, 3},
                                             {1, 3, 2, 16, 1},
                                             {1, 1, 33, 16, 3}}) {
      const Function f = turned(batch, height, width, channels, kernel);
      const std::string what = fmt::format("{}x{}x{}x{}, windows of {}", batch, height, width, channels, kernel);
      EXPECT_EQ(scheduled(f, machine(bits, registers), 1e-5), "conv") << what << last_remarks;
      // Where vectors do not fill the channels, what is left over is a nest of its own.
      if (height > 1 && channels % 32 == 0)
        EXPECT_LE(2 * largest_allocation(f, machine(bits, registers)), height * width * channels) << what;
    }
}

// An image turned to channels last, with zeros around it: the sides are loops of their own, what is inside goes in
// squares without a condition.
TEST(epilogue, is_on_tiles_inside_a_padding_of_an_image_of_any_size) {
  const Var n = ir::size_var("n"), h = ir::size_var("h"), w = ir::size_var("w");
  for (const int64_t channels : {5, 32, 70})
    for (const auto& [bits, registers] : machines) {
      const Function f = convolved({n, h, w, int64(channels)}, 1, {n, h, w});
      for (const auto& [height, width] :
           std::vector<std::pair<int64_t, int64_t>>{{3, 17}, {1, 8}, {2, 1}, {0, 4}, {2, 0}})
        EXPECT_NE(scheduled(f, machine(bits, registers), 0, {{"n", 2}, {"h", height}, {"w", width}}), "fallback")
            << last_remarks;
      AnalyticDecider decider;
      const Schedule done =
          schedule_function(Schedule::create(f).value_or_throw(), machine(bits, registers), decider, {});
      EXPECT_EQ(between(done.function()), std::set<std::string>{}) << bits << " bits, " << channels;
      bool asks = false;
      ir::post_order(done.function().body, [&](const ir::NodeRef& node) {
        const auto* call = node.as<ir::Call>();
        asks = asks || (call && call->op == &ir::intrinsic::if_then_else);
      });
      EXPECT_FALSE(asks) << bits << " bits, " << channels;
    }
}

TEST(epilogue, turns_an_image_into_its_padding) {
  for (const auto& [bits, registers] : machines)
    for (const auto& [height, width, channels] :
         std::vector<std::array<int64_t, 3>>{{5, 32, 48}, {3, 19, 21}, {1, 40, 16}, {7, 3, 64}}) {
      Builder b;
      const Buffer x = b.input("X", {int64(channels), int64(height), int64(width)});
      const Buffer y = b.output("Y", {int64(height + 1), int64(width + 2), int64(channels)});
      b.compute("pad", y, [&](const std::vector<Expr>& i) {
        const Expr inside = logical_and(i[0] < height, logical_and(i[1] >= 1, i[1] < width + 1));
        return if_then_else(inside, load(x, {i[2], i[0], i[1] - 1}), testing::f32(0));
      });
      const Function f = b.build();
      EXPECT_EQ(scheduled(f, machine(bits, registers)), "elementwise") << last_remarks;
      AnalyticDecider decider;
      const Schedule done =
          schedule_function(Schedule::create(f).value_or_throw(), machine(bits, registers), decider, {});
      const std::vector<Work> list = works(done.function());
      if (width >= 4)
        EXPECT_FALSE(is_conditional(find(list, "pad")->block())) << height << "x" << width << "x" << channels;
    }
}

}  // namespace
}  // namespace lathe::schedule
