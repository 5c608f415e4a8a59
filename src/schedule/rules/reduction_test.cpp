#include <gtest/gtest.h>

#include "ir/visit.h"
#include "schedule/rules/rules.h"
#include "schedule/testing/programs.h"
#include "schedule/testing/rule_check.h"

namespace lathe::schedule {
namespace {

using testing::Builder;
using testing::last_remarks;
using testing::machine;
using testing::machines;
using testing::scheduled;

// Short axes behind one another are one long row, whose sum is gathered in vectors.
TEST(reduction, joins_axes_behind_one_another) {
  for (const auto& [rows, columns] : std::vector<std::array<int64_t, 2>>{{31, 3}, {56, 56}, {5, 300}, {40, 128}}) {
    Builder b;
    const Buffer x = b.input("X", {int64(4), int64(rows), int64(columns)}), y = b.output("Y", {int64(4)});
    b.sum("sum", y, {{"i", int64(rows)}, {"j", int64(columns)}},
          [&](const std::vector<Expr>& i) { return load(x, i); });
    const Function f = b.build();
    for (const auto& [bits, registers] : machines) {
      EXPECT_EQ(scheduled(f, machine(bits, registers), 1e-5), "reduction") << last_remarks;
      AnalyticDecider decider;
      const Schedule done =
          schedule_function(Schedule::create(f).value_or_throw(), machine(bits, registers), decider, {});
      EXPECT_NE(done.trace().as_python().find("rfactor"), std::string::npos) << done.trace().as_python();
      bool over_rows = false;
      ir::post_order(done.function().body, [&, rows = rows](const ir::NodeRef& n) {
        const auto* loop = n.as<tir::For>();
        over_rows = over_rows || (loop && as_int(loop->extent) == rows);
      });
      EXPECT_FALSE(over_rows) << rows << "x" << columns;
    }
  }
}

// Axes of one iteration have no loops in the row that the block is brought to.
TEST(reduction, takes_rows_of_one_element) {
  const Function f = testing::from_text(R"(
@T.prim_func
def main(X: T.Buffer((6, 1, 1, 1), "float32"), Y: T.Buffer((6, 7, 3), "float32")):
    sums = T.alloc_buffer((6, 1, 1, 1), "float32")
    for i, r, s, t in T.grid(6, 1, 1, 1):
        with T.block("sums"):
            vi, vr, vs, vt = T.axis.remap("SRRR", [i, r, s, t])
            with T.init():
                sums[vi, 0, 0, 0] = T.float32(0)
            sums[vi, 0, 0, 0] = sums[vi, 0, 0, 0] + X[vi, vr, vs, vt]
    for i, r, s, t, j, k in T.grid(6, 1, 1, 1, 7, 3):
        with T.block("spread"):
            vi, vr, vs, vt, vj, vk = T.axis.remap("SRRRSS", [i, r, s, t, j, k])
            with T.init():
                Y[vi, vj, vk] = T.float32(0)
            Y[vi, vj, vk] = Y[vi, vj, vk] + sums[vi, vr, vs, vt]
)");
  for (const auto& [bits, registers] : machines)
    EXPECT_EQ(scheduled(f, machine(bits, registers)), "reduction") << last_remarks;
}

TEST(reduction, takes_rows_of_a_length_that_is_not_known) {
  const char* softmax = R"(
@T.prim_func
def main(x: T.handle, y: T.handle, n: T.int64(is_size_var=True)):
    X = T.match_buffer(x, (3, n), "float32")
    Y = T.match_buffer(y, (3, n), "float32")
    largest = T.alloc_buffer((3,), "float32")
    powers = T.alloc_buffer((3, n), "float32")
    sums = T.alloc_buffer((3,), "float32")
    for i in range(3):
        with T.block("largest_start"):
            vi = T.axis.spatial(3, i)
            largest[vi] = T.float32("-inf")
    for i, k in T.grid(3, n):
        with T.block("largest"):
            vi, vk = T.axis.remap("SR", [i, k])
            largest[vi] = T.Select(X[vi, vk] > largest[vi], X[vi, vk], largest[vi])
    for i, j in T.grid(3, n):
        with T.block("powers"):
            vi, vj = T.axis.remap("SS", [i, j])
            powers[vi, vj] = T.exp(X[vi, vj] - largest[vi])
    for i in range(3):
        with T.block("sums_start"):
            vi = T.axis.spatial(3, i)
            sums[vi] = T.float32(0)
    for i, k in T.grid(3, n):
        with T.block("sums"):
            vi, vk = T.axis.remap("SR", [i, k])
            sums[vi] = sums[vi] + powers[vi, vk]
    for i, j in T.grid(3, n):
        with T.block("divide"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = powers[vi, vj] / sums[vi]
)";
  for (const auto& [bits, registers] : machines)
    for (const int64_t n : {0, 1, 15, 70, 130})
      EXPECT_EQ(scheduled(testing::from_text(softmax), machine(bits, registers), 1e-6, {{"n", n}}), "reduction")
          << bits << " bits, " << n << last_remarks;
  // Both reductions: vectors side by side, and those that are left one by one.
  AnalyticDecider decider;
  Schedule done =
      schedule_function(Schedule::create(testing::from_text(softmax)).value_or_throw(), machine(256, 16), decider, {});
  for (const char* block : {"largest_rf", "largest_rf_rf", "sums_rf", "sums_rf_rf"})
    EXPECT_TRUE(done.get_block(block).ok()) << block;
}

// softmax over the last axis of a batch of one, or more: the variable of a loop of one iteration stays in the blocks
// that move into the loops over rows.
Function softmax_of_batches(int64_t batch, int64_t rows, int64_t columns) {
  Builder b;
  const std::vector<Expr> shape{int64(batch), int64(rows), int64(columns)}, by_row{int64(batch), int64(rows)};
  const Buffer x = b.input("X", shape), y = b.output("Y", shape);
  const Buffer most = b.inner("M", by_row), e = b.inner("E", shape), total = b.inner("S", by_row);
  const auto row = [](const Buffer& buffer, const std::vector<Expr>& i) { return load(buffer, {i[0], i[1]}); };
  b.max("max", most, {{"k", int64(columns)}}, [&](const std::vector<Expr>& i) { return load(x, i); });
  b.compute("exp", e, [&](const std::vector<Expr>& i) { return call(intrinsic::exp, load(x, i) - row(most, i)); });
  b.sum("sum", total, {{"k", int64(columns)}}, [&](const std::vector<Expr>& i) { return load(e, i); });
  b.compute("norm", y, [&](const std::vector<Expr>& i) { return div(load(e, i), row(total, i)); });
  return b.build();
}

TEST(reduction, takes_softmax_of_a_batch_of_one) {
  for (const int64_t batch : {1, 2})
    EXPECT_EQ(scheduled(softmax_of_batches(batch, 3, 40), machine(512, 32), 1e-5), "reduction") << last_remarks;
}

TEST(reduction, takes_softmax_row_by_row) {
  for (const int64_t columns : {1, 3, 16, 37, 64, 300})
    EXPECT_EQ(scheduled(testing::softmax(int64(5), int64(columns)), machine(512, 32), 1e-5), "reduction")
        << columns << last_remarks;
  for (const int64_t columns : {1, 37, 1000})  // a single row
    EXPECT_EQ(scheduled(testing::softmax(int64(1), int64(columns)), machine(512, 32), 1e-5), "reduction")
        << columns << last_remarks;
  const Var n = ir::size_var("n");
  for (const int64_t columns : {1, 16, 100})
    EXPECT_EQ(scheduled(testing::softmax(int64(3), n), machine(256, 16), 1e-5, {{"n", columns}}), "reduction")
        << columns << last_remarks;
}

TEST(reduction, takes_sums_and_maxima_of_rows) {
  for (const bool sum : {true, false})
    for (const int64_t columns : {1, 9, 10, 15, 24, 30, 64, 67, 520}) {
      Builder b;
      const Buffer x = b.input("X", {int64(3), int64(2), int64(columns)}), y = b.output("Y", {int64(3), int64(2)});
      const auto body = [&](const std::vector<Expr>& i) { return load(x, i) * load(x, i); };
      if (sum)
        b.sum("r", y, {{"k", int64(columns)}}, body);
      else
        b.max("r", y, {{"k", int64(columns)}}, body);
      EXPECT_EQ(scheduled(b.build(), machine(512, 32)), columns > 4 ? "reduction" : "pool") << columns << last_remarks;
    }
}

// softmax over the rows of [heads, rows, columns], which lie turned: as [rows, columns, heads], or with rows and
// columns exchanged.
Function softmax_of_turned(Expr heads, Expr rows, Expr columns, bool heads_last, const std::vector<Var>& symbols = {}) {
  Builder b;
  const std::vector<Expr> shape{heads, rows, columns}, by_row{heads, rows};
  const Buffer x = heads_last ? b.input("X", {rows, columns, heads}) : b.input("X", {heads, columns, rows});
  const Buffer y = b.output("Y", shape), t = b.inner("T", shape), e = b.inner("E", shape);
  const Buffer most = b.inner("M", by_row), total = b.inner("S", by_row);
  const auto row = [](const Buffer& buffer, const std::vector<Expr>& i) { return load(buffer, {i[0], i[1]}); };
  b.compute("turn", t, [&](const std::vector<Expr>& i) {
    return heads_last ? load(x, {i[1], i[2], i[0]}) : load(x, {i[0], i[2], i[1]});
  });
  b.max("max", most, {{"k", columns}}, [&](const std::vector<Expr>& i) { return load(t, i); });
  b.compute("exp", e, [&](const std::vector<Expr>& i) { return call(intrinsic::exp, load(t, i) - row(most, i)); });
  b.sum("sum", total, {{"k", columns}}, [&](const std::vector<Expr>& i) { return load(e, i); });
  b.compute("norm", y, [&](const std::vector<Expr>& i) { return div(load(e, i), row(total, i)); });
  return b.build(symbols);
}

// Rows of less than two vectors are summed in halves or quarters of one.
TEST(reduction, sums_short_rows_in_narrower_vectors) {
  const auto widest = [](int64_t columns) {
    Builder b;
    const Buffer x = b.input("X", {int64(6), int64(columns)}), y = b.output("Y", {int64(6)});
    b.sum("r", y, {{"k", int64(columns)}}, [&](const std::vector<Expr>& i) { return load(x, i); });
    const Function f = b.build();
    EXPECT_EQ(scheduled(f, machine(512, 32), 1e-6), "reduction") << columns << last_remarks;
    AnalyticDecider decider;
    const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), machine(512, 32), decider, {});
    int64_t lanes = 1;
    ir::post_order(done.function().body, [&](const ir::NodeRef& n) {
      const auto* loop = n.as<tir::For>();
      if (loop && loop->kind == tir::ForKind::vectorized)
        lanes = std::max(lanes, ir::as_int(loop->extent).value_or(lanes));
    });
    return lanes;
  };
  EXPECT_EQ(widest(7), 1);
  EXPECT_EQ(widest(8), 4);
  EXPECT_EQ(widest(10), 4);
  EXPECT_EQ(widest(24), 8);
  EXPECT_EQ(widest(31), 8);
  EXPECT_EQ(widest(32), 16);
}

TEST(reduction, turns_what_it_would_gather) {
  for (const auto& [bits, registers] : machines)
    for (const auto& [heads, rows, columns] : {std::tuple{4, 16, 48}, {3, 5, 37}, {6, 33, 70}, {1, 20, 64}, {2, 1, 40}})
      for (const bool heads_last : {true, false}) {
        const Function f = softmax_of_turned(int64(heads), int64(rows), int64(columns), heads_last);
        EXPECT_EQ(scheduled(f, machine(bits, registers), 1e-5), "reduction")
            << heads << " " << rows << " " << columns << last_remarks;
        AnalyticDecider decider;
        Schedule done = schedule_function(Schedule::create(f).value_or_throw(), machine(bits, registers), decider, {});
        // A copy of its own; one head, or one row, lies as it is.
        EXPECT_EQ(done.get_block("turn").ok(), (heads_last ? heads : rows) > 1) << done.trace().as_python();
      }
  const Var n = ir::size_var("n");
  for (const int64_t columns : {1, 16, 100})
    EXPECT_EQ(scheduled(softmax_of_turned(int64(4), int64(8), n, true, {n}), machine(512, 32), 1e-5, {{"n", columns}}),
              "reduction")
        << columns << last_remarks;
}

}  // namespace
}  // namespace lathe::schedule
