// Convolutions of groups that each have channels enough for vectors.
#include <gtest/gtest.h>

#include "schedule/testing/programs.h"
#include "schedule/testing/rule_check.h"

namespace lathe::schedule {
namespace {

// Channels last, weights [group, kernel, kernel, inputs, outputs]; the first axis may be of any extent.
Function grouped_conv(int64_t batch, int64_t groups, int64_t inputs, int64_t outputs, int64_t height, int64_t width,
                      int64_t kernel, int64_t stride) {
  testing::Builder b;
  const Buffer x = b.input("X", {int64(batch), int64((height - 1) * stride + kernel),
                                 int64((width - 1) * stride + kernel), int64(groups * inputs)});
  const Buffer w = b.input("W", {int64(groups), int64(kernel), int64(kernel), int64(inputs), int64(outputs)});
  const Buffer bias = b.input("bias", {int64(groups * outputs)});
  const std::vector<Expr> shape{int64(batch), int64(height), int64(width), int64(groups * outputs)};
  const Buffer c = b.inner("C", shape), y = b.output("Y", shape);
  b.sum("conv", c, {{"rc", int64(inputs)}, {"kh", int64(kernel)}, {"kw", int64(kernel)}},
        [&](const std::vector<Expr>& i) {
          const Expr group = floordiv(i[3], int64(outputs));
          return load(x, {i[0], i[1] * stride + i[5], i[2] * stride + i[6], group * inputs + i[4]}) *
                 load(w, {group, i[5], i[6], i[4], floormod(i[3], int64(outputs))});
        });
  b.compute("add", y, [&](const std::vector<Expr>& i) { return load(c, i) + load(bias, {i[3]}); });
  return b.build();
}

TEST(conv, has_a_loop_over_groups) {
  for (const auto& [bits, registers] : testing::machines)
    for (const auto& [batch, groups, inputs, outputs, height, width, kernel, stride] :
         std::vector<std::array<int64_t, 8>>{{1, 4, 4, 8, 5, 14, 3, 1},
                                             {2, 3, 5, 17, 3, 7, 3, 2},
                                             {1, 2, 3, 48, 4, 9, 3, 3},
                                             {3, 33, 2, 8, 2, 3, 1, 1},
                                             {1, 2, 4, 12, 1, 13, 2, 1},
                                             {1, 5, 2, 16, 7, 7, 3, 1}}) {
      const std::string taken =
          testing::scheduled(grouped_conv(batch, groups, inputs, outputs, height, width, kernel, stride),
                             testing::machine(bits, registers));
      EXPECT_EQ(taken, "conv") << groups << " groups of " << inputs << " to " << outputs << testing::last_remarks;
    }
}

// Where groups share the lines of the caches, the rows are cut into pieces outside them, which the second cache holds.
TEST(conv, cuts_the_rows_outside_groups) {
  for (const auto& [bits, registers] : testing::machines)
    for (const auto& [groups, size, height, width, pieces] :
         std::vector<std::array<int64_t, 5>>{{6, 8, 6, 9, 3}, {3, 12, 4, 5, 2}, {5, 8, 1, 28, 2}, {2, 9, 5, 11, 5}}) {
      const Function f = grouped_conv(2, groups, size, size, height, width, 3, 1);
      EXPECT_EQ(testing::scheduled(f, testing::machine(bits, registers), 0, {},
                                   {{"conv.share", pieces}, {"conv.rows", 7}, {"conv.tall", 1}}),
                "conv")
          << pieces << " pieces, " << groups << " groups of " << size << testing::last_remarks;
    }
  const target::Target small = testing::with_small_caches(256, 16);
  const auto share = [&](int64_t groups, int64_t size, int64_t kernel = 3) {
    return testing::decided(grouped_conv(1, groups, size, size, 8, 14, kernel, 1), small, "share=", "share=");
  };
  EXPECT_EQ(share(8, 8, 1), "share=8");
  EXPECT_EQ(share(4, 16), "share=1") << "each group has lines of its own";
  EXPECT_EQ(share(8, 8), "share=1") << "the weights of all groups come from further away";
}

// What is summed in parts is one group's, not all groups' again for each.
TEST(conv, sums_long_groups_in_parts) {
  for (const auto& [bits, registers] : testing::machines)
    for (const auto& [groups, inputs, outputs, width, kernel] :
         std::vector<std::array<int64_t, 5>>{{3, 60, 16, 5, 3}, {2, 7, 48, 3, 9}, {2, 130, 20, 7, 2}}) {
      const Function f = grouped_conv(1, groups, inputs, outputs, 1, width, kernel, 1);
      const target::Target target = testing::machine(bits, registers);
      EXPECT_EQ(testing::scheduled(f, target, 1e-3), "conv") << testing::last_remarks;
      EXPECT_LE(testing::largest_allocation(f, target), 14 * outputs) << bits << " bits, " << groups << " groups";
    }
}

}  // namespace
}  // namespace lathe::schedule
