#include <gtest/gtest.h>

#include <random>

#include "ir/visit.h"
#include "schedule/testing/random_program.h"
#include "schedule/testing/rule_check.h"

namespace lathe::schedule {
namespace {

namespace of_stencil {

using testing::Builder;
using testing::last_remarks;
using testing::machine;
using testing::scheduled;

// One resampled axis: element i reads (step * i + shift) // period and what follows it, or a place from a table.
struct Axis {
  int64_t from = 1, to = 1, step = 1, shift = 0, period = 1, taps = 1;
  bool from_table = false;
};

Expr place(const Axis& axis, const Buffer& table, const Expr& i, int64_t tap) {
  const Expr first = axis.from_table ? load(table, {i}) : floordiv(i * axis.step + axis.shift, int64(axis.period));
  return max(min(first + tap, int64(axis.from - 1)), int64(0));
}

// [images, rows.from, columns.from] resampled along rows and then columns, or the other way, or along both at once
// where each has one tap.
Function resampled(int64_t images, const Axis& rows, const Axis& columns, int64_t inner, bool across_first = false) {
  Builder b;
  const auto with_inner = [&](std::vector<Expr> all, const Expr& last) {
    if (inner > 1) all.push_back(last);
    return all;
  };
  const auto last_of = [&](const std::vector<Expr>& i) { return inner > 1 ? i[3] : int64(0); };
  const Buffer x = b.input("X", with_inner({int64(images), int64(rows.from), int64(columns.from)}, int64(inner)));
  const Buffer down = b.input("D", {int64(rows.to)}, DType::int64()),
               across = b.input("A", {int64(columns.to)}, DType::int64());
  const Buffer w = b.input("W", {int64(columns.taps), int64(columns.to)}),
               v = b.input("V", {int64(rows.taps), int64(rows.to)});
  const Buffer y = b.output("Y", with_inner({int64(images), int64(rows.to), int64(columns.to)}, int64(inner)));
  const auto sum = [](int64_t taps, const std::function<Expr(int64_t)>& term) {
    Expr all = term(0);
    for (int64_t k = 1; k < taps; ++k) all = all + term(k);
    return all;
  };
  if (rows.taps == 1 && columns.taps == 1) {
    b.compute("nearest", y, [&](const std::vector<Expr>& i) {
      return load(x, with_inner({i[0], place(rows, down, i[1], 0), place(columns, across, i[2], 0)}, last_of(i)));
    });
    return b.build();
  }
  const Buffer t = b.inner("T", with_inner({int64(images), int64(across_first ? rows.from : rows.to),
                                            int64(across_first ? columns.to : columns.from)},
                                           int64(inner)));
  const auto pass = [&](bool is_down, const Buffer& from, const Buffer& to) {
    const Axis& axis = is_down ? rows : columns;
    b.compute(is_down ? "down" : "across", to, [&](const std::vector<Expr>& i) {
      return sum(axis.taps, [&](int64_t k) {
        const Expr at = place(axis, is_down ? down : across, i[is_down ? 1 : 2], k);
        const Expr row = is_down ? at : i[1], column = is_down ? i[2] : at;
        return load(from, with_inner({i[0], row, column}, last_of(i))) *
               (is_down ? load(v, {int64(k), i[1]}) : load(w, {int64(k), i[2]}));
      });
    });
  };
  pass(!across_first, x, t);
  pass(across_first, t, y);
  return b.build();
}

TEST(stencil, keeps_the_meaning_of_random_resamplings) {
  std::mt19937 random(5);
  const auto one_of = [&](std::vector<int64_t> values) { return values[random() % values.size()]; };
  std::map<std::string, int> taken;
  for (int trial = 0; trial < 60; ++trial) {
    const auto axis = [&]() {
      Axis a;
      a.from = one_of({1, 2, 3, 7, 16, 19, 40});
      a.to = one_of({1, 2, 5, 16, 31, 33, 64, 97});
      a.period = one_of({1, 2, 3, 4, 5, 8});
      a.step = one_of({0, 1, 1, 2, 3});
      a.shift = one_of({-5, -1, 0, 0, 1, 2, 9});
      a.taps = one_of({1, 2, 2, 4});
      a.from_table = random() % 6 == 0;
      return a;
    };
    const Axis rows = axis(), columns = axis();
    const int64_t images = one_of({1, 2, 3}), inner = trial % 4 == 0 ? one_of({2, 8, 17}) : 1;
    const std::string rule = scheduled(resampled(images, rows, columns, inner, trial % 2 == 1),
                                       machine(trial % 3 == 0 ? 256 : 512, 32), 1e-5);
    ++taken[rule];
    EXPECT_TRUE(rule == "stencil" || rule == "elementwise") << rule << last_remarks;
  }
  EXPECT_GT(taken["stencil"], 30);
}

// What becomes of twice the size, each row from the one before it and its own.
std::vector<const For*> loops_in(const Function& f, ForKind kind) {
  std::vector<const For*> found;
  ir::post_order(f->body, [&](const ir::NodeRef& n) {
    const auto* loop = n.as<For>();
    if (loop && loop->kind == kind) found.push_back(loop);
  });
  return found;
}

TEST(stencil, walks_rows_in_vectors_apart_from_their_edges) {
  const Axis twice{24, 48, 1, -1, 2, 2};
  const Function f = resampled(2, twice, twice, 1);
  AnalyticDecider decider;
  const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), machine(512, 32), decider, {});
  const Function after = done.mod().find_as<PrimFunc>("main");
  int64_t whole = 0;
  for (const For* loop : loops_in(after, ForKind::vectorized)) whole += is_int(loop->extent, 16);
  EXPECT_EQ(whole, 2) << done.trace().as_python();  // a row of 24, one of 46
  // The rows between are computed where they are read, not before.
  bool inside = false;
  ir::post_order(after->body, [&](const ir::NodeRef& n) {
    const auto* loop = n.as<For>();
    if (!loop || !is_int(loop->extent, 48)) return;
    std::set<std::string> blocks;
    ir::post_order(loop->body, [&](const ir::NodeRef& m) {
      if (const auto* block = m.as<Block>()) blocks.insert(block->name.substr(0, block->name.find("_part")));
    });
    inside = inside || blocks == std::set<std::string>{"down", "across"};
  });
  EXPECT_TRUE(inside) << done.trace().as_python();
}

// Where columns are resampled first, a plane of them is kept; a few planes leave threads idle, so these share rows.
TEST(stencil, gives_threads_rows_where_planes_are_few) {
  Axis rows{60, 130, 2, 0, 5, 2}, columns{40, 120, 2, 0, 5, 2};
  rows.from_table = columns.from_table = true;
  const auto shared = [&](int64_t images) {
    AnalyticDecider decider;
    const Function f = resampled(images, rows, columns, 1, true);
    const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), machine(512, 32), decider, {});
    std::vector<int64_t> extents;
    for (const For* loop : loops_in(done.mod().find_as<PrimFunc>("main"), ForKind::parallel))
      extents.push_back(as_int(loop->extent).value_or(-1));
    return extents;
  };
  EXPECT_EQ(shared(16), std::vector<int64_t>{16});
  const std::vector<int64_t> few = shared(7);
  ASSERT_EQ(few.size(), 2U);
  EXPECT_EQ(few[0], 7 * 60);
  EXPECT_EQ(few[1], 7 * 130);
}

TEST(stencil, leaves_what_reads_no_windows) {
  Builder b;
  const Buffer x = b.input("X", {int64(8), int64(32)}), y = b.output("Y", {int64(8), int64(32)});
  b.compute("twice", y, [&](const std::vector<Expr>& i) { return load(x, i) + load(x, i); });
  EXPECT_EQ(scheduled(b.build(), machine(512, 32)), "elementwise");
  EXPECT_NE(last_remarks.find("stencil: no block reads windows of another"), std::string::npos) << last_remarks;
}

}  // namespace of_stencil

}  // namespace
}  // namespace lathe::schedule
