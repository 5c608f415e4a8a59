#include "arith/int_set.h"

#include <gtest/gtest.h>

#include "arith/random_expr.h"
#include "ir/visit.h"

namespace lathe::arith {
namespace {

using namespace ir;

class IntSet : public testing::Test {
 protected:
  Analyzer analyzer;
  Var i = var("i"), j = var("j"), x = var("x"), n = size_var("n");

  void expect(const Expr& e, const Domain& domain, const Expr& low, const Expr& high) {
    const Interval interval = evaluate_interval(e, domain, analyzer);
    ASSERT_TRUE(interval.bounded());
    EXPECT_TRUE(analyzer.can_prove_equal(interval.min, low)) << show(interval.min);
    EXPECT_TRUE(analyzer.can_prove_equal(interval.max, high)) << show(interval.max);
  }
};

TEST_F(IntSet, follows_terms_of_the_domain) {
  const Domain tile{{i, {int64(0), int64(8)}}, {j, {int64(0), int64(3)}}};
  expect(x * 8 + i, tile, x * 8, x * 8 + 7);
  expect(x * 16 + i * 2 + j, tile, x * 16, x * 16 + 16);
  expect(x - i, tile, x - 7, x);
  expect(floordiv(x * 8 + i, int64(8)), tile, x, x);
  expect(max(x + i, int64(0)), tile, max(x, int64(0)), max(x + 7, int64(0)));
  expect(i * n, tile, int64(0), n * 7);
  expect(i - i + x, tile, x, x);
}

TEST_F(IntSet, takes_symbolic_and_dependent_ranges) {
  expect(i * 4 + j, {{i, {int64(0), n}}, {j, {int64(0), int64(4)}}}, int64(0), n * 4 - 1);
  // A triangle: j from i to n - 1.
  expect(j, {{i, {int64(0), n}}, {j, {i, n - i}}}, int64(0), n - 1);
}

TEST_F(IntSet, has_no_ends_where_nothing_is_known) {
  const Buffer a = buffer("A", {int64(8)}, DType::int64());
  const Domain domain{{i, {int64(0), int64(8)}}};
  const Interval loaded = evaluate_interval(load(a, {i}), domain, analyzer);
  EXPECT_FALSE(loaded.min);
  EXPECT_FALSE(loaded.max);
}

TEST_F(IntSet, regions_have_a_range) {
  const Interval interval = evaluate_interval(x * 8 + i, {{i, {int64(0), int64(8)}}}, analyzer);
  EXPECT_TRUE(is_int(interval.range(analyzer).extent, 8));
}

TEST_F(IntSet, hulls_and_common_parts) {
  const Interval a{int64(0), int64(7)}, b{int64(4), int64(12)}, open{int64(2), {}};
  EXPECT_TRUE(is_int(unite(a, b, analyzer).max, 12));
  EXPECT_TRUE(is_int(intersect(a, b, analyzer).min, 4));
  EXPECT_FALSE(unite(a, open, analyzer).max);
  EXPECT_TRUE(is_int(intersect(a, open, analyzer).max, 7));
}

TEST(RandomIntSet, holds_every_value) {
  int bounded = 0;
  RandomExprs exprs{.random = std::mt19937_64(11), .vars = {var("x"), var("y"), var("z")}};
  const Var &x = exprs.vars[0], &y = exprs.vars[1], &z = exprs.vars[2];
  for (int round = 0; round < 3000; ++round) {
    Analyzer analyzer;
    const Expr e = exprs.integer(3);
    const int64_t low = exprs.below(9) - 4, extent = 1 + exprs.below(9), wide = 1 + exprs.below(7);
    // x is free, y runs over a constant range and z over one that starts at y.
    const Domain domain{{y, {int64(low), int64(extent)}}, {z, {y + 1, int64(wide)}}};
    const Interval interval = evaluate_interval(e, domain, analyzer);
    for (const Expr& end : {interval.min, interval.max})
      if (end) ASSERT_FALSE(uses_var(end, y) || uses_var(end, z)) << show(e) << " gives " << show(end);
    bounded += interval.bounded();
    const int64_t at = exprs.below(21) - 10;
    for (int64_t b = low; b < low + extent; ++b)
      for (int64_t c = b + 1; c < b + 1 + wide; ++c) {
        const auto value = evaluate(e, {{x.get(), at}, {y.get(), b}, {z.get(), c}});
        if (!value) continue;
        if (interval.min)
          if (const auto end = evaluate(interval.min, {{x.get(), at}})) ASSERT_LE(*end, *value) << show(e);
        if (interval.max)
          if (const auto end = evaluate(interval.max, {{x.get(), at}})) ASSERT_GE(*end, *value) << show(e);
      }
  }
  EXPECT_GT(bounded, 1500);
}

}  // namespace
}  // namespace lathe::arith
