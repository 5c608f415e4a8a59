#include "schedule/rules/tile/panels.h"

#include <gtest/gtest.h>

#include "schedule/testing/programs.h"
#include "schedule/testing/rule_check.h"

namespace lathe::schedule {
namespace {

using testing::Builder;
using testing::last_remarks;
using testing::machine;
using testing::machines;
using testing::scheduled;
using testing::with_small_caches;

enum class Copies { none, before, one_by_one };

// How the schedule of the rules copies B: by no block, before the tiles, or inside the loop around them.
Copies copies(const Function& f, const target::Target& target, const std::map<std::string, int64_t>& decisions = {}) {
  AnalyticDecider model;
  TableDecider decider(decisions, model);
  const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), target, decider, {});
  std::set<std::string> copied;
  Copies found = Copies::none;
  const std::vector<Work> list = works(done.function());
  for (const Work& work : list) {
    const std::vector<Buffer> read = buffers_read(work.realize);
    if (work.reduces() || read.size() != 1 || read[0]->name != "B") continue;
    found = !work.loops.empty() && work.loops[0] == list.back().loops[0] ? Copies::one_by_one : Copies::before;
  }
  return found;
}

struct Sizes {
  int64_t rows, columns, terms;
  int64_t batch = 0;  // 0: none
  bool own_weights = false;
  std::string text() const { return fmt::format("{} x {} x {}, {} batches", rows, terms, columns, batch); }
};

// A product with or without a batch, and a relu.
Function panel_product(const Sizes& s) {
  Builder b;
  const auto shape = [&](bool batched, int64_t rows, int64_t columns) {
    std::vector<Expr> extents{int64(rows), int64(columns)};
    if (batched) extents.insert(extents.begin(), int64(s.batch));
    return extents;
  };
  const bool batched = s.batch > 0, own = batched && s.own_weights;
  const Buffer x = b.input("A", shape(batched, s.rows, s.terms)), w = b.input("B", shape(own, s.terms, s.columns));
  const Buffer c = b.inner("C", shape(batched, s.rows, s.columns));
  const Buffer d = b.output("D", shape(batched, s.rows, s.columns));
  b.sum("product", c, {{"k", int64(s.terms)}}, [&](const std::vector<Expr>& i) {
    if (!batched) return load(x, {i[0], i[2]}) * load(w, {i[2], i[1]});
    const Expr weight = own ? load(w, {i[0], i[3], i[2]}) : load(w, {i[3], i[2]});
    return load(x, {i[0], i[1], i[3]}) * weight;
  });
  b.compute("relu", d, [&](const std::vector<Expr>& i) { return max(load(c, i), testing::f32(0)); });
  return b.build();
}

TEST(panels, are_copied_one_by_one_where_they_are_whole) {
  for (const auto& [bits, registers] : machines) {
    const target::Target target = with_small_caches(bits, registers);
    const int64_t width = 2 * target.lanes(32);
    for (const int64_t rows : {48, 53}) {
      const Function f = panel_product({rows, 3 * width, 33});
      EXPECT_EQ(scheduled(f, target), "gemm") << last_remarks;
      EXPECT_EQ(copies(f, target, {{"gemm.rows_first", 0}, {"gemm.share", 1}}), Copies::one_by_one)
          << bits << " bits, " << rows;
      EXPECT_EQ(copies(f, target, {{"gemm.rows_first", 1}}), Copies::before) << bits << " bits, " << rows;
      EXPECT_EQ(copies(f, target, {{"gemm.panels", 0}}), Copies::none) << bits << " bits, " << rows;
    }
  }
}

TEST(panels, are_copied_before_the_tiles_where_one_is_left_over) {
  for (const auto& [bits, registers] : machines)
    for (const int64_t columns : {65, 75, 84}) {
      const Function f = panel_product({50, columns, 21});
      EXPECT_EQ(scheduled(f, with_small_caches(bits, registers)), "gemm") << last_remarks;
      EXPECT_EQ(copies(f, with_small_caches(bits, registers)), Copies::before) << bits << " bits, " << columns;
    }
}

// One matrix times a batch of others: each of these is cut into panels of its own, one after the other.
TEST(panels, of_a_batch_are_copied_where_the_first_matrix_is_one) {
  for (const auto& [bits, registers] : machines) {
    const target::Target target = with_small_caches(bits, registers);
    const int64_t width = 2 * target.lanes(32);
    for (const int64_t batch : {1, 3}) {
      Builder b;
      const Buffer x = b.input("A", {int64(48), int64(33)}),
                   w = b.input("B", {int64(batch), int64(33), int64(4 * width)});
      const Buffer c = b.output("C", {int64(batch), int64(48), int64(4 * width)});
      b.sum("product", c, {{"k", int64(33)}},
            [&](const std::vector<Expr>& i) { return load(x, {i[1], i[3]}) * load(w, {i[0], i[3], i[2]}); });
      const Function f = b.build();
      EXPECT_EQ(scheduled(f, target), "gemm") << last_remarks;
      EXPECT_EQ(copies(f, target, {{"gemm.rows_first", 0}, {"gemm.share", 1}}), Copies::one_by_one) << batch;
      EXPECT_EQ(copies(f, target, {{"gemm.panels", 0}}), Copies::none) << batch;
    }
  }
}

// Four panels are copied together where threads get even numbers of these and half of the second cache holds them.
TEST(panels, are_copied_side_by_side) {
  const auto loops_outside = [](int64_t panels, int64_t terms) {
    AnalyticDecider model;
    TableDecider decider({{"gemm.vectors", 2}, {"gemm.panels", 2}, {"gemm.rows_first", 0}, {"gemm.share", 1}}, model);
    const target::Target target = with_small_caches(256, 16);
    const Function f = panel_product({48, 16 * panels, terms});
    const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), target, decider, {});
    const std::vector<Work> list = works(done.function());
    return as_int(list.back().loops[0]->extent);
  };
  EXPECT_EQ(loops_outside(8, 32), 2);
  EXPECT_EQ(loops_outside(12, 32), 4) << "three turns are not even";
  EXPECT_EQ(loops_outside(8, 64), 4) << "two panels are 8 KB";
  EXPECT_EQ(loops_outside(3, 32), 3);
}

TEST(panels, keep_what_is_computed) {
  const std::vector<Sizes> sizes{{30, 64, 7},          {14, 96, 300},       {13, 41, 5},
                                 {12, 64, 6, 3, true}, {7, 80, 5, 2, true}, {12, 64, 6, 3},
                                 {5, 72, 4, 2},        {1, 64, 3},          {6, 64, 1}};
  int64_t number = 0;
  for (const auto& [bits, registers] : machines)
    for (const Sizes& s : sizes) {
      // The other answers, in turn.
      const int64_t rows_first = number % 2, share = 1 + number / 2 % 2;
      ++number;
      for (const int64_t panels : {1, 2})
        EXPECT_EQ(scheduled(panel_product(s), machine(bits, registers), 1e-5, {},
                            {{"gemm.panels", panels}, {"gemm.rows_first", rows_first}, {"gemm.share", share}}),
                  "gemm")
            << bits << " bits, " << s.text() << ", panels " << panels << ", rows first " << rows_first << ", share "
            << share << "\n"
            << last_remarks;
    }
}

// Of weights that a batch shares there is one copy; of its own ones, none of all of them.
TEST(panels, of_a_batch_are_copied_in_its_loop_where_they_are_its_own) {
  const target::Target target = with_small_caches(256, 16);
  EXPECT_EQ(copies(panel_product({48, 64, 33, 2, true}), target, {{"gemm.rows_first", 0}}), Copies::one_by_one);
  EXPECT_EQ(copies(panel_product({48, 65, 33, 2, true}), target), Copies::none);
  EXPECT_NE(copies(panel_product({24, 65, 33, 2}), target), Copies::none);
}

TEST(panels, are_not_worth_it_for_few_rows_small_weights_and_a_single_panel) {
  const target::Target small = with_small_caches(256, 16);
  EXPECT_EQ(copies(panel_product({20, 64, 40}), small), Copies::none) << "few rows";
  EXPECT_EQ(copies(panel_product({48, 32, 7}), small), Copies::none) << "weights that the nearest cache holds";
  EXPECT_EQ(copies(panel_product({48, 16, 40}), small, {{"gemm.panels", 1}}), Copies::none) << "one panel";
  EXPECT_EQ(copies(panel_product({48, 64, 33}), machine(256, 16)), Copies::none) << "larger caches";
}

// Rows that meet in few sets of the second cache pay for a copy earlier: 16 KB in 8 ways are 32 sets, in one of which
// rows of 2 KB meet.
TEST(panels, pay_earlier_where_rows_meet_in_few_sets) {
  const target::Target small = with_small_caches(256, 16);
  EXPECT_NE(copies(panel_product({24, 512, 9}), small), Copies::none);
  EXPECT_EQ(copies(panel_product({24, 528, 9}), small), Copies::none);
}

TEST(panels, are_not_asked_for_where_extents_are_not_known) {
  const Var rows = ir::size_var("m"), terms = ir::size_var("k");
  EXPECT_EQ(copies(testing::matmul(rows, int64(64), int64(33)), with_small_caches(256, 16), {{"gemm.panels", 1}}),
            Copies::none);
  EXPECT_EQ(copies(testing::matmul(int64(48), int64(64), terms), with_small_caches(256, 16), {{"gemm.panels", 1}}),
            Copies::none);
}

}  // namespace
}  // namespace lathe::schedule
