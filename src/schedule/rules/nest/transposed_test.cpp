#include "schedule/rules/nest/transposed.h"

#include <gtest/gtest.h>

#include "schedule/testing/random_program.h"
#include "schedule/testing/rule_check.h"

namespace lathe::schedule {
namespace {

using testing::Builder;
using testing::machine;

// Y[j, i] = X[i, j]
Function transposed(int64_t rows, int64_t columns) {
  Builder b;
  const Buffer x = b.input("X", {int64(rows), int64(columns)}), y = b.output("Y", {int64(columns), int64(rows)});
  b.compute("transpose", y, [&](const std::vector<Expr>& i) { return load(x, {i[1], i[0]}); });
  return b.build();
}

// Extents of the loops around what writes the first part of the result.
std::vector<int64_t> loops_of(int64_t rows, int64_t columns, int bits) {
  AnalyticDecider decider;
  const Schedule start = Schedule::create(transposed(rows, columns)).value_or_throw();
  const Schedule done = schedule_function(start, machine(bits, 32), decider, {});
  std::vector<int64_t> extents;
  const std::vector<Work> list = works(done.function());
  for (const For* loop : find(list, "transpose")->loops) extents.push_back(as_int(loop->extent).value_or(0));
  return extents;
}

TEST(tile_crossing, writes_whole_cache_lines) {
  EXPECT_EQ(loops_of(64, 40, 512), (std::vector<int64_t>{4, 2, 16, 16})) << "a square is as wide as a line";
  EXPECT_EQ(loops_of(64, 40, 256), (std::vector<int64_t>{4, 5, 2, 8, 8}));
  EXPECT_EQ(loops_of(64, 40, 128), (std::vector<int64_t>{4, 10, 4, 4, 4}));
  EXPECT_EQ(loops_of(24, 40, 256), (std::vector<int64_t>{3, 5, 8, 8})) << "three squares are no whole lines";
}

TEST(tile_crossing, takes_what_is_left_over) {
  for (const auto& [bits, registers] : testing::machines)
    for (const int64_t rows : {16, 32, 37, 48})
      for (const int64_t columns : {5, 7, 21, 30})
        EXPECT_EQ(testing::scheduled(transposed(rows, columns), machine(bits, registers)), "elementwise")
            << rows << "x" << columns << testing::last_remarks;
}

}  // namespace
}  // namespace lathe::schedule
