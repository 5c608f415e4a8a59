#include "schedule/rules/cut_reduction.h"

#include <gtest/gtest.h>

#include "driver/pipeline.h"
#include "schedule/testing/programs.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

using testing::Builder;

struct Reduced {
  std::vector<int64_t> shape;
  std::vector<bool> axes;  // whether that axis is reduced
};

// One value for each place along the axes that stay, of a tensor that is read in its own order.
Function reduction_of(const Reduced& row, bool sums) {
  std::vector<Expr> shape, kept;
  std::vector<testing::Axis> reduced;
  for (size_t axis = 0; axis < row.shape.size(); ++axis) {
    shape.push_back(ir::int64(row.shape[axis]));
    if (row.axes[axis])
      reduced.push_back({fmt::format("k{}", axis), ir::int64(row.shape[axis])});
    else
      kept.push_back(ir::int64(row.shape[axis]));
  }
  Builder b;
  const Buffer x = b.input("X", shape), y = b.output("Y", kept);
  const auto body = [&](const std::vector<Expr>& i) {
    std::vector<Expr> indices;
    size_t stays = 0, goes = kept.size();
    for (const bool is_reduced : row.axes) indices.push_back(i[is_reduced ? goes++ : stays++]);
    return load(x, indices);
  };
  sums ? b.sum("r", y, reduced, body) : b.max("r", y, reduced, body);
  return b.build();
}

target::Target two_cores(int bits) {
  target::Target target;
  target.vector_bits = bits;
  target.vector_registers = 32;
  target.cores = 2;
  return target;
}

std::string name_of(const Reduced& row) {
  std::string text;
  for (size_t axis = 0; axis < row.shape.size(); ++axis)
    text += fmt::format("{}{} ", row.shape[axis], row.axes[axis] ? "*" : "");
  return text;
}

TEST(cut_reduction, keeps_what_is_computed) {
  const std::vector<Reduced> rows{
      {{5, 3, 37}, {true, false, true}},
      {{5, 3, 37}, {false, true, true}},
      {{5, 3, 37}, {true, true, true}},
      {{1, 3, 64}, {true, false, true}},
      {{7, 1, 33}, {true, true, true}},
      {{1, 1, 1}, {true, true, true}},
      {{2, 3, 4, 35}, {true, false, true, true}},
      {{3, 2, 5, 40}, {false, true, false, true}},
      {{4, 3, 5}, {true, false, true}},
      {{0, 3, 37}, {true, false, true}},
      {{3, 0, 37}, {true, false, true}},
      {{40000}, {true}},
      {{16411}, {true}},
      {{2, 9000}, {false, true}},
      {{3, 96, 160}, {false, true, true}},
      {{131, 130}, {true, true}},
      {{5, 30, 300}, {true, true, true}},
  };
  for (const Reduced& row : rows)
    for (const bool sums : {true, false})
      for (const int bits : {512, 128}) {
        const Function before = reduction_of(row, sums);
        AnalyticDecider decider;
        const Function after =
            schedule_function(Schedule::create(before).value_or_throw(), two_cores(bits), decider, {})
                .mod()
                .find_as<PrimFunc>("main");
        EXPECT_EQ(tir::testing::difference(before, after, 3, {}, nullptr, 1e-5), "") << name_of(row) << sums << bits;
        const auto kernel = driver::lower_to_kernel(after);
        ASSERT_TRUE(kernel) << name_of(row);
        EXPECT_EQ(tir::testing::difference(before, *kernel, 4, {}, nullptr, 1e-5), "") << name_of(row) << sums << bits;
      }
}

// How many partial results there are for each result; 0 where the block stays one.
int64_t pieces(const Reduced& row) {
  Schedule schedule = Schedule::create(reduction_of(row, true)).value_or_throw();
  const auto cut = cut_reduction(schedule, schedule.get_block("r").value_or_throw(), 16).value_or_throw();
  if (!cut) return 0;
  return *as_int(schedule.get(schedule.get_loops(schedule.get_block("r").value_or_throw()).value_or_throw().back())
                     .value_or_throw()
                     ->extent);
}

TEST(cut_reduction, has_a_piece_for_each_row_and_for_parts_of_long_ones) {
  EXPECT_EQ(pieces({{128, 96, 160}, {true, false, true}}), 128) << "rows apart";
  EXPECT_EQ(pieces({{128, 96, 160}, {true, true, true}}), 480) << "one row of 1,966,080";
  EXPECT_EQ(pieces({{8, 128, 768}, {true, true, true}}), 1024) << "one row, where its loops are";
  EXPECT_EQ(pieces({{4, 128, 160}, {false, true, true}}), 5) << "20,480 elements";
  EXPECT_EQ(pieces({{4, 96, 160}, {false, true, true}}), 0) << "15,360 elements, 240 for each of 64 lanes";
  EXPECT_EQ(pieces({{4, 8, 160}, {false, true, true}}), 0) << "a short row";
  EXPECT_EQ(pieces({{128, 96, 3}, {true, false, true}}), 0) << "rows too short for vectors";
  EXPECT_EQ(pieces({{65537}, {true}}), 0) << "a length without divisors";
  EXPECT_EQ(pieces({{4, 5, 6}, {true, true, false}}), 0) << "the innermost axis stays";
}

// A sum of equal terms: added one after another, they lose most of their digits.
TEST(cut_reduction, leaves_long_sums_exact) {
  const Function f = testing::from_text(R"(
@T.prim_func
def main(X: T.Buffer((1,), "float32"), Y: T.Buffer((1,), "float32")):
    for k in range(262144):
        with T.block("sum"):
            vk = T.axis.reduce(262144, k)
            with T.init():
                Y[0] = T.float32(0)
            Y[0] = Y[0] + X[0]
)");
  AnalyticDecider decider;
  const Function after = schedule_function(Schedule::create(f).value_or_throw(), two_cores(512), decider, {})
                             .mod()
                             .find_as<PrimFunc>("main");
  const float term = 0.1F;
  tir::TensorBuffer x = tir::TensorBuffer::zeros(DType::float32(), {1}), y = x;
  x.set_float(0, term);
  std::vector<tir::TensorBuffer> arguments{x, y};
  ASSERT_TRUE(tir::interpret(after, arguments));
  EXPECT_NEAR(arguments[1].float_at(0) / (262144.0 * static_cast<double>(term)), 1.0, 1e-6);
}

}  // namespace
}  // namespace lathe::schedule
