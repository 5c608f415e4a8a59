#include <gtest/gtest.h>

#include "arith/analyzer.h"
#include "arith/terms.h"
#include "ir/structural.h"

namespace lathe::arith {
namespace {

using namespace ir;

class Simplify : public testing::Test {
 protected:
  Analyzer analyzer;
  Var i = var("i"), j = var("j"), k = var("k"), x = var("x"), y = var("y"), n = size_var("n"), m = size_var("m");

  void loop(const Var& v, int64_t extent) { analyzer.bind(v, Range{int64(0), int64(extent)}); }
  void expect(const Expr& e, const Expr& wanted) {
    const Expr simple = analyzer.simplify(e);
    const auto difference = first_difference(simple, wanted);
    EXPECT_FALSE(difference) << *difference;
    EXPECT_TRUE(same(analyzer.simplify(simple), simple)) << "simplifying twice differs from once";
  }
  void expect(const Expr& e, int64_t wanted) { expect(e, int64(wanted)); }
  void expect_true(const Expr& e) { EXPECT_TRUE(is_int(analyzer.simplify(e), 1)); }
  void expect_false(const Expr& e) { EXPECT_TRUE(is_int(analyzer.simplify(e), 0)); }
  static Expr fd(const Expr& a, int64_t b) { return floordiv(a, int64(b)); }
  static Expr fm(const Expr& a, int64_t b) { return floormod(a, int64(b)); }
};

TEST_F(Simplify, collects_like_terms) {
  expect(x + y - x, y);
  expect(x * 3 + y - x * 2 + 5 - 5, x + y);
  expect((x + 1) * 4 - x * 4, 4);
  expect(x * y - y * x, 0);
  expect((x + y) * (x - y) + y * y, x * x);
}

TEST_F(Simplify, splits_quotients_and_remainders) {
  loop(j, 8);
  expect(fd(i * 8 + j, 8), i);
  expect(fm(i * 8 + j, 8), j);
  expect(fd(i * 32 + j, 16), fd(i, 1) * 2);
  expect(fd(i * 32 + j, 64), fd(i, 2));
  expect(fm(i * 32 + j, 64), fm(i, 2) * 32 + j);
  expect(fd(x, 4) * 4 + fm(x, 4), x);
  expect(fm(fd(x, 4), 3) * 4 + fm(x, 4), fm(x, 12));
  expect(fd(x, 12) * 12 + fm(fd(x, 4), 3) * 4 + fm(x, 4), x);
  // A quotient of a fused loop's parts is simpler than that of all.
  const Expr fused = i * 4096 + k * 16 + j;
  expect(fd(fused, 25096) * 25096 + fm(fd(fused, 8), 3137) * 8 + fm(j, 8), fused);
  expect(fd(fused, 120) * 15 + fm(fd(fused, 8), 15), i * 512 + k * 2);
  expect(fd(fd(x, 3), 5), fd(x, 15));
  expect(fd(x + 24, 8), fd(x, 8) + 3);
  expect(fm(fm(x, 64), 8), fm(x, 8));
  expect(fd(fm(x, 64), 8), fm(fd(x, 8), 8));
  expect(fd(x * 6 + 4, 4), fd(x * 3, 2) + 1);
}

TEST_F(Simplify, joins_quotients_and_remainders_by_symbols) {
  const auto digits = [](const Expr& e, const Expr& by) { return floordiv(e, by) * by + floormod(e, by); };
  const Expr fused = i * 16 + j;
  expect(digits(x, n), x);
  expect(digits(fused, n), fused);
  expect(digits(x, n * m), x);
  expect(digits(x, n) * m, analyzer.simplify(x * m));
  expect((i * m + floordiv(fused, n)) * n + floormod(fused, n), analyzer.simplify(i * m * n + fused));
  expect(digits(x, n) * 3 - digits(y, m), x * 3 - y);
  for (const Expr& apart : {floordiv(x, n) * m + floormod(x, n), floordiv(x, n) * n + floormod(y, n),
                            floordiv(x, n) * n * 2 + floormod(x, n), floordiv(x, n) * n + floormod(x, m)})
    EXPECT_FALSE(same(analyzer.simplify(apart), x));
}

TEST_F(Simplify, divides_by_symbols) {
  analyzer.bind(i, Range{int64(0), n});
  analyzer.bind(j, Range{int64(0), m});
  expect(floordiv(i * m + j, m), i);
  expect(floormod(i * m + j, m), j);
  expect(floordiv(n * m, m), n);
  expect_true(i * m + j < n * m);
  expect_false(i * m + j >= n * m);
  expect_true(i < n);
  expect_true(i + 1 <= n);
}

TEST_F(Simplify, decides_comparisons) {
  loop(i, 10);
  loop(j, 32);
  expect_true(i < 10);
  expect_false(i < 0);
  expect_true(i * 32 + j < 320);
  expect(i * 32 + j < 64, i < 2);
  expect(x + 3 < y + 3, x < y);
  expect(x * 4 < 10, x < 3);
  expect(int64(3) <= x + 5, int64(-2) <= x);
  expect(logical_not(x < y), Expr(y <= x));
  expect_false(eq(fm(x, 2), int64(5)));
  expect_false(eq(x * 4 + 1, y * 2));
}

// Where a tile begins inside a strip of which the last is shorter: by quotients of a length that is not negative.
TEST_F(Simplify, knows_that_sums_of_quotients_are_not_negative) {
  const Expr length = min(n - i * 28, int64(28)), tiles = fd(length, 14) * 14, rest = fd(length - tiles, 4) * 4;
  EXPECT_FALSE(analyzer.can_prove(tiles + j >= 0)) << "nothing says that the length is not negative";
  analyzer.bind(i, Range{int64(0), fd(n + 27, 28)});
  analyzer.bind(j, Range{int64(0), length - tiles - rest});
  expect_true(i * 28 + tiles + rest + j >= 0);
  expect_true(i * 28 + tiles + rest + j < n);
  EXPECT_FALSE(analyzer.can_prove(i * 28 + tiles + rest + j >= 1));
  EXPECT_FALSE(analyzer.can_prove(tiles + fd(x, 4) >= 0));
}

TEST_F(Simplify, uses_what_a_condition_says) {
  loop(i, 16);
  const Buffer a = buffer("A", {int64(16)}, DType::float32());
  const Expr zero = constant(DType::float32(), 0.0);
  expect(if_then_else(i < 16, load(a, {i}), zero), load(a, {i}));
  expect(if_then_else(i < 4, if_then_else(i < 8, load(a, {i}), zero), zero), if_then_else(i < 4, load(a, {i}), zero));
  expect(logical_and(x < 4, x < 10), x < 4);
  {
    const Analyzer::Constraint constraint(analyzer, eq(fm(x, 4), int64(0)));
    expect(fm(x, 2), fm(x, 2));
    EXPECT_EQ(analyzer.modular_set(x).coeff, 4);
    const Analyzer::Constraint inner(analyzer, x < y);
    expect_true(x + 1 <= y);
  }
  EXPECT_EQ(analyzer.modular_set(x).coeff, 1);
  EXPECT_FALSE(analyzer.can_prove(x < y));
}

TEST_F(Simplify, minimum_and_maximum) {
  loop(i, 8);
  expect(min(i, int64(7)), i);
  expect(max(i + 1, i), i + 1);
  expect(min(n - x, n - x + 1), n - x);
}

TEST_F(Simplify, keeps_the_handle_where_nothing_changes) {
  const Expr e = i * 4 + j;
  EXPECT_TRUE(analyzer.simplify(e).same_as(e));
}

}  // namespace
}  // namespace lathe::arith
