#include "schedule/cost/cost.h"

#include <gtest/gtest.h>

#include "ir/match.h"
#include "schedule/testing/programs.h"

namespace lathe::schedule {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

target::Target machine() {
  target::Target target;
  target.vector_bits = 512;
  target.vector_registers = 32;
  target.cores = 2;
  return target;
}

// 64 operations (two multiply-adds of 16 lanes) a cycle of a nanosecond.
Rates rates(int threads = 1) {
  return {
      .operations_per_second = 64e9 * threads, .levels = {{48e3, 128e9}, {1e6, 64e9}, {0, 16e9}}, .threads = threads};
}

Cost cost_of(const Schedule& schedule, int threads = 1) {
  return predict(*schedule.mod().find_as<PrimFunc>("main"), machine(), rates(threads)).value();
}

struct Tiled {
  Schedule schedule;
  BlockRV block;
  std::vector<LoopRV> rows, lanes;
  LoopRV sum;
};

// Tiles of so many rows by vectors of 16 lanes, the sum outside of them.
Tiled tiled(int64_t m, int64_t n, int64_t k, int64_t rows, int64_t vectors) {
  Schedule schedule = Schedule::create(matmul(ir::int64(m), ir::int64(n), ir::int64(k))).value_or_throw();
  const BlockRV block = schedule.get_block("matmul").value_or_throw();
  const auto loops = schedule.get_loops(block).value_or_throw();
  const auto i = schedule.split(loops[0], {std::nullopt, rows}).value_or_throw();
  const auto j = schedule.split(loops[1], {std::nullopt, vectors, 16}).value_or_throw();
  EXPECT_TRUE(schedule.reorder({i[0], j[0], loops[2], i[1], j[1], j[2]}).ok());
  for (const LoopRV& loop : {i[1], j[1]}) EXPECT_TRUE(schedule.unroll(loop).ok());
  EXPECT_TRUE(schedule.vectorize(j[2]).ok());
  return {std::move(schedule), block, i, j, loops[2]};
}

TEST(predict, counts_a_tile_by_hand) {
  const Cost cost = cost_of(tiled(16, 64, 100, 8, 2).schedule);
  // 2 x 2 tiles, 100 terms each: 8 x 2 multiply-adds, two a cycle of a nanosecond.
  EXPECT_DOUBLE_EQ(cost.arithmetic, 4 * 100 * 8 * 1e-9);
  // 8 elements of A and 2 vectors of B, two a cycle; C is read and written, 16 vectors each, a write counts two;
  // before that it is set to zero.
  EXPECT_DOUBLE_EQ(cost.access, 4 * (100 * (8 + 2 + 16 + 32) / 2.0 + 16) * 1e-9);
  EXPECT_DOUBLE_EQ(cost.latency, cost.arithmetic) << "16 sums at once are enough";
  EXPECT_EQ(cost.movement, 0) << "all of it fits the nearest cache";
}

TEST(predict, sees_the_rows_of_panels) {
  const auto cost = [](int64_t panel) {
    Builder b;
    const Buffer x = b.input("A", {ir::int64(256 / panel), ir::int64(panel)}), y = b.output("B", {ir::int64(256)});
    b.compute("copy", y, [&](const std::vector<Expr>& i) {
      const Expr width = ir::int64(panel);
      return ir::load(x, {ir::floordiv(i[0], width), ir::floormod(i[0], width)});
    });
    Schedule schedule = Schedule::create(b.build()).value_or_throw();
    const auto loops = schedule.get_loops(schedule.get_block("copy").value_or_throw()).value_or_throw();
    const auto cut = schedule.split(loops[0], {std::nullopt, 2, 16}).value_or_throw();
    EXPECT_TRUE(schedule.unroll(cut[1]).ok() && schedule.vectorize(cut[2]).ok());
    return cost_of(schedule).access;
  };
  EXPECT_DOUBLE_EQ(cost(32), cost(256)) << "16 vectors of each";
  EXPECT_DOUBLE_EQ(cost(16), cost(256));
  EXPECT_GT(cost(8), 4 * cost(256)) << "a vector is of two rows";
}

TEST(predict, few_sums_wait_for_themselves) {
  const Cost cost = cost_of(tiled(16, 64, 100, 1, 1).schedule);
  EXPECT_DOUBLE_EQ(cost.latency, 8 * cost.arithmetic);
  const Cost outer = cost_of(Schedule::create(matmul(ir::int64(4), ir::int64(4), ir::int64(4))).value_or_throw());
  EXPECT_DOUBLE_EQ(outer.latency, 8 * outer.arithmetic) << "one sum after the other";
}

TEST(predict, loops_of_one_turn_are_no_sums) {
  Tiled t = tiled(16, 64, 100, 8, 2);
  const double plain = cost_of(t.schedule).latency;
  ASSERT_TRUE(t.schedule.unroll(t.schedule.add_unit_loop(t.block).value_or_throw()).ok());
  EXPECT_DOUBLE_EQ(cost_of(t.schedule).latency, plain);
}

TEST(predict, memory_counts_where_it_is_far) {
  Builder b;
  const Buffer x = b.input("A", {ir::int64(1 << 20)}), y = b.output("B", {ir::int64(1 << 20)});
  b.compute("copy", y, [&](const std::vector<Expr>& i) { return ir::load(x, {i[0]}) * f32(2); });
  const Schedule schedule = Schedule::create(b.build()).value_or_throw();
  const Cost cost = cost_of(schedule);
  // 8 MB beyond both caches: through the second at 64 GB/s, from memory at 16.
  EXPECT_NEAR(cost.movement, 8.0 * (1 << 20) * (1 / 64e9 + 1 / 16e9), 1e-9);
}

TEST(predict, threads_share_the_outermost_parallel_loop) {
  Tiled t = tiled(24, 64, 100, 8, 2);
  const double alone = cost_of(t.schedule).arithmetic;
  ASSERT_TRUE(t.schedule.parallel(t.rows[0]).ok());
  EXPECT_DOUBLE_EQ(cost_of(t.schedule).arithmetic, alone);
  EXPECT_DOUBLE_EQ(cost_of(t.schedule, 2).arithmetic, alone * 2 / 3) << "three pieces for two threads";
}

TEST(predict, scalar_functions_cost_more_than_operators) {
  const auto cost = [](Expr (*f)(const Expr&)) {
    Builder b;
    const Buffer x = b.input("A", {ir::int64(256)}), y = b.output("B", {ir::int64(256)});
    b.compute("map", y, [&](const std::vector<Expr>& i) { return f(ir::load(x, {i[0]})); });
    return cost_of(Schedule::create(b.build()).value_or_throw()).arithmetic;
  };
  const double one = cost([](const Expr& e) { return e + f32(1); });
  EXPECT_GT(cost([](const Expr& e) { return ir::call(e->dtype, ir::intrinsic::exp, {e}); }), 8 * one);
  EXPECT_GT(cost([](const Expr& e) { return ir::div(e, f32(3)); }), 8 * one);
}

TEST(predict, needs_constant_extents) {
  const Function f = matmul(ir::size_var("n"), ir::int64(4), ir::int64(4));
  EXPECT_FALSE(predict(*f, machine(), rates()));
}

}  // namespace
}  // namespace lathe::schedule
