#include "schedule/rules/tile/tile_model.h"

#include <gtest/gtest.h>

#include "schedule/testing/programs.h"
#include "schedule/testing/rule_check.h"

namespace lathe::schedule {
namespace {

using testing::machine;

// Vectors and rows of a product's tile, as the model decides them.
std::string tile_of(const target::Target& target, int64_t m, int64_t n) {
  AnalyticDecider decider;
  std::string text;
  ir::PassContext context;
  context.on_remark = [&](const ir::Remark& remark) {
    if (remark.taken) text = remark.text;
  };
  const Function f = testing::matmul(int64(m), int64(n), int64(8));
  schedule_function(Schedule::create(f).value_or_throw(), target, decider, context);
  const size_t begin = text.find("vectors=");
  return begin == std::string::npos ? text : text.substr(begin, text.find(' ', text.find("rows=")) - begin);
}

// Beside the sums, a row of weights and what multiplies it: with none to spare code generation spills.
TEST(tile_shape, leaves_a_register_free) {
  EXPECT_EQ(tile_of(machine(256, 16), 28, 8), "vectors=1 rows=10");
  EXPECT_EQ(tile_of(machine(256, 16), 36, 32), "vectors=2 rows=6");
  EXPECT_EQ(tile_of(machine(256, 16), 36, 24), "vectors=3 rows=3");
  EXPECT_EQ(tile_of(machine(512, 32), 28, 32), "vectors=2 rows=14");
  EXPECT_EQ(tile_of(machine(512, 32), 36, 48), "vectors=3 rows=9");
}

TEST(tile_shape, has_three_vectors_where_that_is_all) {
  for (const int64_t rows : {1, 5, 49}) {
    EXPECT_EQ(tile_of(machine(256, 16), rows, 24).substr(0, 9), "vectors=3") << rows;
    EXPECT_NE(tile_of(machine(256, 16), rows, 72).substr(0, 9), "vectors=3") << rows << ": whole panels of two";
  }
}

// What is passed over once for each cut of the lanes, and the second cache does not keep.
TEST(tile_shape, is_wide_and_low_where_fewer_cuts_pass_over_much) {
  const target::Target many = machine(512, 32);
  EXPECT_EQ(tile_of(many, 2100, 256), "vectors=4 rows=6");
  EXPECT_EQ(tile_of(many, 70, 4096), "vectors=4 rows=5") << "equal tiles";
  EXPECT_EQ(tile_of(many, 280, 128), "vectors=2 rows=14") << "the second cache keeps it";
  EXPECT_EQ(tile_of(many, 2100, 96), "vectors=2 rows=14") << "wide cuts leave half of one over";
  EXPECT_EQ(tile_of(many, 2100, 511), "vectors=4 rows=6") << "little beside seven";
  EXPECT_EQ(tile_of(many, 42, 8192), "vectors=2 rows=14") << "few rows";
  EXPECT_EQ(tile_of(machine(256, 16), 2100, 256), "vectors=2 rows=6") << "few registers";
}

}  // namespace
}  // namespace lathe::schedule
