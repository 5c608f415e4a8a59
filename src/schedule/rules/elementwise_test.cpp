#include <gtest/gtest.h>

#include "ir/visit.h"
#include "schedule/rules/nest/work.h"
#include "schedule/rules/rules.h"
#include "schedule/testing/programs.h"
#include "schedule/testing/rule_check.h"

namespace lathe::schedule {
namespace {

namespace of_elementwise {

using testing::Builder;
using testing::last_remarks;
using testing::machine;
using testing::machines;
using testing::scheduled;

// Whether a loop of the scheduled function is in vectors.
bool is_in_vectors(const Function& f, const target::Target& target) {
  AnalyticDecider decider;
  const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), target, decider, {});
  bool found = false;
  ir::post_order(done.function().body, [&](const ir::NodeRef& n) {
    const auto* loop = n.as<tir::For>();
    found = found || (loop && loop->kind == tir::ForKind::vectorized);
  });
  return found;
}

TEST(elementwise, takes_chains_broadcasts_and_tails) {
  for (const auto& shape : std::vector<std::vector<int64_t>>{
           {0}, {1}, {17}, {4, 0}, {3, 5}, {2, 3, 64}, {2, 8, 7, 7}, {4, 6, 9}, {4, 6, 10}, {5, 12}, {3, 13}}) {
    std::vector<Expr> extents;
    for (const int64_t n : shape) extents.push_back(int64(n));
    Builder b;
    const Buffer x = b.input("X", extents), w = b.input("W", {extents[shape.size() > 1 ? 1 : 0]});
    const Buffer t = b.inner("T", extents), y = b.output("Y", extents);
    b.compute("scale", t,
              [&](const std::vector<Expr>& i) { return load(x, i) * load(w, {i[shape.size() > 1 ? 1 : 0]}); });
    b.compute("relu", y, [&](const std::vector<Expr>& i) { return max(load(t, i), testing::f32(0)); });
    EXPECT_EQ(scheduled(b.build(), machine(512, 32)), "elementwise");
  }
}

TEST(elementwise, transposes_by_squares) {
  // Y[b, j, k, i] = X[b, i, k, j]
  for (const auto& [batch, rows, between, columns] : std::vector<std::array<int64_t, 4>>{{1, 17, 1, 40},
                                                                                         {2, 16, 3, 33},
                                                                                         {3, 64, 1, 257},
                                                                                         {1, 15, 1, 40},
                                                                                         {2, 32, 2, 16},
                                                                                         {1, 7, 2, 5},
                                                                                         {2, 4, 1, 30}})
    for (const int bits : {512, 256}) {
      Builder b;
      const Buffer x = b.input("X", {int64(batch), int64(rows), int64(between), int64(columns)});
      const Buffer y = b.output("Y", {int64(batch), int64(columns), int64(between), int64(rows)});
      b.compute("transpose", y, [&](const std::vector<Expr>& i) { return load(x, {i[0], i[3], i[2], i[1]}); });
      const Function f = b.build();
      EXPECT_EQ(scheduled(f, machine(bits, 32)), "elementwise") << rows << "x" << columns << last_remarks;
      EXPECT_TRUE(is_in_vectors(f, machine(bits, 32))) << rows << "x" << columns << ", " << bits << " bits";
    }
}

// Channels of pixels as planes: rows that lie in each other, `channels` of every `step` elements.
Function planes(Expr height, Expr width, int64_t channels, int64_t step, DType dtype) {
  Builder b;
  const Buffer x = b.input("X", {height, width, int64(step)}, dtype);
  const Buffer y = b.output("Y", {int64(channels), height, width});
  b.compute("planes", y, [&](const std::vector<Expr>& i) {
    return cast(DType::float32(), load(x, {i[1], i[2], i[0]})) * testing::f32(2);
  });
  return b.build();
}

TEST(elementwise, pulls_apart_rows_that_lie_in_each_other) {
  for (const DType dtype : {DType::float32(), DType::uint(8), DType::float_(64)})
    for (const auto& [channels, step] : std::vector<std::array<int64_t, 2>>{{2, 2}, {3, 3}, {3, 4}, {4, 4}, {1, 3}})
      for (const int64_t width : {0, 1, 7, 8, 9, 31, 33, 64})
        for (const int bits : {512, 256, 128}) {
          const Function f = planes(int64(5), int64(width), channels, step, dtype);
          EXPECT_EQ(scheduled(f, machine(bits, 16)), "elementwise") << last_remarks;
          if (width >= 31)
            EXPECT_TRUE(is_in_vectors(f, machine(bits, 16))) << channels << " of " << step << ", " << bits;
        }
  const Var h = ir::size_var("h"), w = ir::size_var("w");
  const Function f = planes(h, w, 3, 3, DType::uint(8));
  EXPECT_TRUE(is_in_vectors(f, machine(256, 16)));
  for (const int64_t width : {0, 1, 8, 29})
    EXPECT_EQ(scheduled(f, machine(256, 16), 0, {{"h", 3}, {"w", width}}), "elementwise") << last_remarks;
}

// A triangle of each matrix: the numbers of rows and columns are what they are, not quotients of one number.
TEST(elementwise, keeps_rows_whose_numbers_it_computes_with) {
  for (const int64_t columns : {1, 15, 16, 100}) {
    Builder b;
    const std::vector<Expr> shape{int64(3), int64(20), int64(columns)};
    const Buffer x = b.input("X", shape), y = b.output("Y", shape);
    b.compute("lower", y,
              [&](const std::vector<Expr>& i) { return select(i[2] <= i[1], load(x, i), testing::f32(0)); });
    const Function f = b.build();
    EXPECT_EQ(scheduled(f, machine(256, 16)), "elementwise") << last_remarks;
    AnalyticDecider decider;
    const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), machine(256, 16), decider, {});
    bool divides = false;
    ir::post_order(done.function().body, [&](const ir::NodeRef& n) { divides = divides || n.is<ir::FloorDiv>(); });
    if (columns > 1) EXPECT_EQ(divides, columns < 16) << columns;
  }
}

// Elements by number are gathered once, not again for each of the images that they are added to; whole rows are not
// kept.
TEST(elementwise, gathers_elements_once) {
  for (const bool whole_rows : {false, true}) {
    Builder b;
    const Buffer table = b.input("T", {int64(50), int64(24)});
    const Buffer which = b.input("which", {int64(whole_rows ? 12 : 24)}, DType::int_(64));
    const Buffer x = b.input("X", {int64(6), int64(12), int64(24)});
    const Buffer taken = b.inner("taken", {int64(12), int64(24)}), y = b.output("Y", {int64(6), int64(12), int64(24)});
    b.compute("take", taken, [&](const std::vector<Expr>& i) {
      const Expr number = max(min(load(which, {i[whole_rows ? 0 : 1]}), int64(23)), int64(0));
      return whole_rows ? load(table, {number, i[1]}) : load(table, {i[0], number});
    });
    b.compute("add", y, [&](const std::vector<Expr>& i) { return load(x, i) + load(taken, {i[1], i[2]}); });
    const Function f = b.build();
    EXPECT_EQ(scheduled(f, machine(256, 16)), "elementwise") << last_remarks;
    AnalyticDecider decider;
    const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), machine(256, 16), decider, {});
    EXPECT_EQ(works(done.function()).size(), whole_rows ? 1U : 2U);
  }
}

TEST(elementwise, takes_elements_by_number_by_fours) {
  const Var n = ir::size_var("n");
  for (const int64_t columns : {1, 7, 8, 9, 30, -1}) {
    const Expr width = columns < 0 ? Expr(n) : int64(columns);
    Builder b;
    const Buffer table = b.input("T", {int64(40), int64(17)});
    const Buffer which = b.input("which", {int64(40), width}, DType::int_(64)), y = b.output("Y", {int64(40), width});
    b.compute("take", y, [&](const std::vector<Expr>& i) {
      return load(table, {i[0], max(min(load(which, i), int64(16)), int64(0))});
    });
    const Function f = columns < 0 ? b.build({n}) : b.build();
    for (const int64_t size : {0, 3, 13})
      EXPECT_EQ(scheduled(f, machine(256, 16), 0, {{"n", size}}), "elementwise") << last_remarks;
    AnalyticDecider decider;
    const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), machine(256, 16), decider, {});
    bool by_fours = false;
    ir::post_order(done.function().body, [&](const ir::NodeRef& node) {
      const auto* loop = node.as<tir::For>();
      by_fours = by_fours || (loop && loop->kind == tir::ForKind::unrolled && ir::is_int(loop->extent, 4));
    });
    EXPECT_EQ(by_fours, columns < 0 || columns >= 8) << columns;
  }
}

// One of three parts that lie behind one another, of several axes that only the run knows: as one loop these are cut
// into chunks that cannot be told apart.
TEST(elementwise, slices_a_part_of_several_unknown_axes) {
  const Var n = ir::size_var("n"), w = ir::size_var("w");
  Builder b;
  const Buffer x = b.input("X", {int64(3), n, int64(8), int64(12), w});
  const Buffer y = b.output("Y", {int64(1), n, int64(8), int64(12), w});
  b.compute("slice", y, [&](const std::vector<Expr>& i) { return load(x, {i[0] + 1, i[1], i[2], i[3], i[4]}); });
  const Function f = b.build({n, w});
  EXPECT_TRUE(is_in_vectors(f, machine(512, 32)));
  for (const int64_t columns : {1, 35})
    EXPECT_EQ(scheduled(f, machine(512, 32), 0, {{"n", 2}, {"w", columns}}), "elementwise") << last_remarks;
}

// A part of the columns, from one that only the run knows: its squares are not sure to lie in the tensor.
TEST(elementwise, transposes_a_part_that_begins_anywhere) {
  const Function f = testing::from_text(R"(
@T.prim_func
def main(x: T.handle, y: T.handle, begin: T.int64(is_size_var=True)):
    X = T.match_buffer(x, (32, 96), "float32")
    Y = T.match_buffer(y, (32, 32), "float32")
    for i, j in T.grid(32, 32):
        with T.block("transpose"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vj, vi + begin]
)");
  for (const int bits : {512, 256})
    for (const int64_t begin : {0, 5, 64}) {
      EXPECT_EQ(scheduled(f, machine(bits, 32), 0, {{"begin", begin}}), "elementwise") << last_remarks;
      EXPECT_TRUE(is_in_vectors(f, machine(bits, 32)));
    }
}

TEST(elementwise, does_not_grow_exponentially_where_values_are_wanted_twice) {
  constexpr int levels = 40;
  Builder b;
  Buffer from = b.input("X", {int64(24)});
  for (int level = 0; level < levels; ++level) {
    const Buffer to =
        level + 1 == levels ? b.output("Y", {int64(24)}) : b.inner("t" + std::to_string(level), {int64(24)});
    b.compute("block" + std::to_string(level), to, [&](const std::vector<Expr>& i) {
      return load(from, i) * testing::f32(0.25) + load(from, i) * testing::f32(0.25);
    });
    from = to;
  }
  EXPECT_EQ(scheduled(b.build(), machine(256, 16)), "elementwise");
}

TEST(elementwise, takes_symbolic_extents) {
  const Var n = ir::size_var("n");
  Builder b;
  const Buffer x = b.input("X", {n, int64(3)}), y = b.output("Y", {n, int64(3)});
  b.compute("negate", y, [&](const std::vector<Expr>& i) { return testing::f32(0) - load(x, i); });
  const Function f = b.build();
  for (const int64_t rows : {0, 1, 5, 700, 3000})
    EXPECT_EQ(scheduled(f, machine(512, 32), 0, {{"n", rows}}), "elementwise") << rows << last_remarks;
}

// Rows of an image between elements of their own: the nearest, those behind a mirror, those of the other end.
enum class Ends { nearest, mirrored, wrapped };
Function with_ends(int64_t planes, int64_t height, int64_t width, int64_t before, int64_t behind, Ends ends) {
  Builder b;
  const Buffer x = b.input("X", {int64(planes), int64(height), int64(width)}),
               y = b.output("Y", {int64(planes), int64(height + 2), int64(before + width + behind)});
  const auto nearest = [](const Expr& at, int64_t extent) { return max(min(at, int64(extent - 1)), int64(0)); };
  b.compute("pad", y, [&](const std::vector<Expr>& i) {
    const Expr row = nearest(i[1] - 1, height), at = i[2] - before;
    Expr outside = nearest(at, width);
    if (ends == Ends::mirrored) outside = nearest(max(at, 0 - at) - 2 * max(at - (width - 1), int64(0)), width);
    if (ends == Ends::wrapped) outside = floormod(at + 4 * width, int64(width));
    return if_then_else(logical_and(i[2] >= before, i[2] < before + width), load(x, {i[0], row, at}),
                        load(x, {i[0], row, outside}));
  });
  return b.build();
}

TEST(elementwise, walks_the_middle_of_rows_that_have_other_ends) {
  for (const Ends ends : {Ends::nearest, Ends::mirrored, Ends::wrapped})
    for (const auto& [bits, registers] : machines)
      for (const auto& [planes, height, width, before, behind] : std::vector<std::array<int64_t, 5>>{
               {2, 5, 56, 3, 3}, {1, 1, 33, 1, 0}, {3, 4, 17, 0, 2}, {1, 2, 100, 7, 5}}) {
        const Function f = with_ends(planes, height, width, before, behind, ends);
        EXPECT_EQ(scheduled(f, machine(bits, registers)), "elementwise") << width << last_remarks;
        EXPECT_TRUE(is_in_vectors(f, machine(bits, registers))) << width;
      }
  // Too narrow for a vector: as it was.
  EXPECT_EQ(scheduled(with_ends(3, 4, 5, 1, 1, Ends::mirrored), machine(512, 32)), "elementwise") << last_remarks;
}

// The first and last rows are others, all of them rows; a single row; a single element.
TEST(elementwise, walks_rows_among_other_rows) {
  for (const auto& [height, width] : std::vector<std::pair<int64_t, int64_t>>{{5, 40}, {1, 17}, {3, 3}}) {
    Builder b;
    const Buffer x = b.input("X", {int64(height), int64(width)}), y = b.output("Y", {int64(height + 3), int64(width)});
    b.compute("pad", y, [&, h = height](const std::vector<Expr>& i) {
      const Expr at = i[0] - 1, nearest = max(min(at, int64(h - 1)), int64(0));
      return if_then_else(logical_and(i[0] >= 1, i[0] < h + 1), load(x, {at, i[1]}), load(x, {nearest, i[1]}));
    });
    EXPECT_EQ(scheduled(b.build(), machine(512, 32)), "elementwise") << last_remarks;
  }
  Builder b;
  const Buffer x = b.input("X", {int64(2)}), y = b.output("Y", {});
  b.compute("choose", y, [&](const std::vector<Expr>&) {
    return if_then_else(load(x, {int64(0)}) > testing::f32(0), load(x, {int64(0)}), load(x, {int64(1)}));
  });
  EXPECT_EQ(scheduled(b.build(), machine(512, 32)), "elementwise") << last_remarks;
}

TEST(elementwise, shares_parts_of_rows_among_threads) {
  const target::Target target = machine(512, 32);
  // Rows that are many, each with its parts; and the parts of a long one.
  EXPECT_EQ(testing::parallel_extents(with_ends(16, 62, 64, 3, 3, Ends::nearest), target), std::vector<int64_t>{1024});
  Builder b;
  const Buffer x = b.input("X", {int64(1), int64(160000)}), y = b.output("Y", {int64(1), int64(160400)});
  b.compute("pad", y, [&](const std::vector<Expr>& i) {
    const Expr at = i[1] - 200;
    return if_then_else(logical_and(i[1] >= 200, i[1] < 160200), load(x, {i[0], at}),
                        load(x, {i[0], max(min(at, int64(159999)), int64(0))}));
  });
  const std::vector<int64_t> shared = testing::parallel_extents(b.build(), target);
  ASSERT_EQ(shared.size(), 1u);
  EXPECT_GE(shared[0], 2);
}

}  // namespace of_elementwise

}  // namespace
}  // namespace lathe::schedule
