// Planes of a padded copy that would meet in a few sets of the nearest cache lie an odd number of lines apart.
#include <gtest/gtest.h>

#include "schedule/analysis/access.h"
#include "schedule/rules/rules.h"
#include "schedule/testing/programs.h"
#include "schedule/testing/rule_check.h"

namespace lathe::schedule {
namespace {

using testing::machine;

// Elements from plane to plane of the padded copy: 0 where it is compact, -1 where there is none.
int64_t plane_stride(const testing::ConvShape& shape, const std::map<std::string, int64_t>& decisions = {}) {
  AnalyticDecider model;
  TableDecider decider(decisions, model);
  const Function f = testing::conv2d(shape);
  const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), machine(256, 16), decider, {});
  for (const Access& access : accesses(done.function().body)) {
    if (access.writes || access.buffer->name != "P") continue;
    return access.buffer->strides.empty() ? 0 : as_int(access.buffer->strides[1]).value_or(-1);
  }
  return -1;
}

testing::ConvShape image(int64_t channels, int64_t height, int64_t width, int64_t kernel = 3) {
  return {1, channels, height, width, 8, kernel, 1, kernel / 2, 8, true, false};
}

TEST(set_planes_apart, where_they_meet_in_a_few_sets) {
  EXPECT_EQ(plane_stride(image(16, 29, 31)), 65 * 16) << "31 x 33 elements are 4092 bytes";
  EXPECT_EQ(plane_stride(image(40, 30, 62)), 129 * 16) << "32 x 64 elements are 8 KB";
  EXPECT_EQ(plane_stride(image(64, 14, 14)), 17 * 16) << "64 planes 1 KB apart meet in four sets";
}

TEST(set_planes_apart, not_where_each_set_keeps_its_lines) {
  EXPECT_EQ(plane_stride(image(16, 28, 31)), 0) << "30 x 33 elements are nearly 62 lines";
  EXPECT_EQ(plane_stride(image(2, 29, 31)), 0) << "two planes of three lines";
  EXPECT_EQ(plane_stride(image(16, 32, 32, 1)), -1) << "no copy";
  EXPECT_EQ(plane_stride(image(16, 29, 31), {{"conv.apart", 0}}), 0) << "it is a question";
}

TEST(set_planes_apart, changes_nothing_that_is_computed) {
  testing::ConvShape shape = image(64, 14, 14);
  shape.stride = 2;
  EXPECT_EQ(plane_stride(shape), 17 * 16);
  for (const auto& [bits, registers] : testing::machines)
    EXPECT_EQ(testing::scheduled(testing::conv2d(shape), machine(bits, registers), 1e-4), "conv")
        << testing::last_remarks;
}

}  // namespace
}  // namespace lathe::schedule
