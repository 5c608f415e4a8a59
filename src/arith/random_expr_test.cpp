#include "arith/random_expr.h"

#include <gtest/gtest.h>

#include "arith/knowledge.h"

namespace lathe::arith {

using namespace ir;

namespace {

std::optional<int64_t> fit(__int128 value, DType dtype) {
  if (dtype.bits < 64) return wrap_integer(static_cast<int64_t>(value), dtype);
  if (value < std::numeric_limits<int64_t>::min() || value > std::numeric_limits<int64_t>::max()) return std::nullopt;
  return static_cast<int64_t>(value);
}

std::optional<int64_t> evaluate_binary(const ExprNode& e, int64_t a, int64_t b, DType dtype) {
  const __int128 x = a, y = b;
  switch (kind_of(e)) {
    case kind<Add>:
      return fit(x + y, dtype);
    case kind<Sub>:
      return fit(x - y, dtype);
    case kind<Mul>:
      return fit(x * y, dtype);
    case kind<Div>:
      return y == 0 ? std::nullopt : fit(x / y, dtype);
    case kind<Mod>:
      return y == 0 ? std::nullopt : fit(x % y, dtype);
    case kind<FloorDiv>:
    case kind<FloorMod>: {
      if (y == 0) return std::nullopt;
      __int128 quotient = x / y;
      while (quotient * y > x && y > 0) --quotient;
      while (quotient * y < x && y < 0) --quotient;
      return fit(kind_of(e) == kind<FloorDiv> ? quotient : x - quotient * y, dtype);
    }
    case kind<Min>:
      return std::min(a, b);
    case kind<Max>:
      return std::max(a, b);
    case kind<EQ>:
      return a == b;
    case kind<NE>:
      return a != b;
    case kind<LT>:
      return a < b;
    case kind<LE>:
      return a <= b;
    case kind<GT>:
      return a > b;
    case kind<GE>:
      return a >= b;
    case kind<And>:
      return a && b;
    case kind<Or>:
      return a || b;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<int64_t> evaluate(const Expr& e, const Bindings& bindings) {
  if (const auto* imm = e.as<IntImm>()) return imm->value;
  if (const auto* v = e.as<VarNode>()) {
    const auto it = bindings.find(v);
    return it == bindings.end() ? std::nullopt : std::optional(it->second);
  }
  if (const auto* n = e.as<Not>()) {
    const auto a = evaluate(n->a, bindings);
    return a ? std::optional<int64_t>(*a == 0) : std::nullopt;
  }
  if (const auto* s = e.as<Select>()) {
    const auto c = evaluate(s->condition, bindings);
    const auto x = evaluate(s->true_value, bindings), y = evaluate(s->false_value, bindings);
    return c && x && y ? (*c ? x : y) : std::nullopt;
  }
  if (const auto* c = e.as<Cast>()) {
    const auto value = evaluate(c->value, bindings);
    return value ? std::optional(wrap_integer(*value, e->dtype)) : std::nullopt;
  }
  std::optional<int64_t> result;
  visit_binary(*e, [&](const auto& n) {
    const auto a = evaluate(n.a, bindings), b = evaluate(n.b, bindings);
    if (a && b) result = evaluate_binary(*e, *a, *b, n.a->dtype);
  });
  return result;
}

std::string show(const Expr& e) {
  if (const auto* imm = e.as<IntImm>()) return std::to_string(imm->value);
  if (const auto* v = e.as<VarNode>()) return v->name;
  std::string text(e->node_class().name);
  text += "(";
  bool first = true;
  e->node_class().for_each_child(*e, [&](const NodeRef& child) {
    text += (first ? "" : ", ") + show(Expr(static_cast<const ExprNode*>(child.get())));
    first = false;
  });
  return text + ")";
}

Expr RandomExprs::integer(int depth) {
  if (depth == 0 || below(6) == 0) {
    if (below(3) == 0)
      return constant(dtype, below(2 * largest_constant + 1) - (dtype.is_uint() ? 0 : largest_constant));
    return vars[static_cast<size_t>(below(static_cast<int64_t>(vars.size())))];
  }
  const auto sub_expr = [&] { return integer(depth - 1); };
  const auto divisor = [&] { return below(4) ? constant(dtype, 1 + below(12)) : sub_expr(); };
  switch (below(13)) {
    case 0:
    case 1:
    case 2:
      return add(sub_expr(), sub_expr());
    case 3:
      return sub(sub_expr(), sub_expr());
    case 4:
      return mul(sub_expr(), constant(dtype, below(13) - (dtype.is_uint() ? 0 : 4)));
    case 5:
      return mul(sub_expr(), sub_expr());
    case 6:
      return floordiv(sub_expr(), divisor());
    case 7:
      return floormod(sub_expr(), divisor());
    case 8:
      return min(sub_expr(), sub_expr());
    case 9:
      return max(sub_expr(), sub_expr());
    case 10:
      return div(sub_expr(), divisor());
    case 11:
      return mod(sub_expr(), divisor());
    default:
      return select(boolean(depth - 1), sub_expr(), sub_expr());
  }
}

Expr RandomExprs::boolean(int depth) {
  const auto side = [&] { return integer(depth > 0 ? depth - 1 : 0); };
  const auto condition = [&] { return boolean(depth - 1); };
  switch (depth > 0 ? below(9) : below(6)) {
    case 0:
      return eq(side(), side());
    case 1:
      return ne(side(), side());
    case 2:
      return lt(side(), side());
    case 3:
      return le(side(), side());
    case 4:
      return gt(side(), side());
    case 5:
      return ge(side(), side());
    case 6:
      return logical_and(condition(), condition());
    case 7:
      return logical_or(condition(), condition());
    default:
      return logical_not(condition());
  }
}

namespace {

struct Ranges {
  std::vector<std::pair<int64_t, int64_t>> of;  // min, extent
};

class RandomSimplification : public testing::TestWithParam<int> {};

TEST_P(RandomSimplification, keeps_values_bounds_and_remainders) {
  RandomExprs exprs{.random = std::mt19937_64(static_cast<uint64_t>(GetParam())),
                    .vars = {var("x"), var("y"), var("z"), var("w")}};
  int compared = 0, smaller = 0;
  for (int round = 0; round < 4000; ++round) {
    Analyzer analyzer;
    Ranges ranges;
    for (const Var& v : exprs.vars) {
      const int64_t low = exprs.below(3) ? 0 : exprs.below(21) - 10, extent = 1 + exprs.below(20);
      ranges.of.emplace_back(low, extent);
      // Some variables are known by range, some by bound and remainder, some not at all.
      const int64_t how = exprs.below(3);
      if (how == 0) analyzer.bind(v, Range{int64(low), int64(extent)});
      if (how == 1) analyzer.update(v, ConstIntBound{low, low + extent - 1});
    }
    const bool condition = exprs.below(3) == 0;
    const Expr e = condition ? exprs.boolean(4) : exprs.integer(4);
    const Expr assumed = exprs.below(4) == 0 ? exprs.boolean(1) : boolean(true);
    const Analyzer::Constraint constraint(analyzer, assumed);
    const Expr simple = analyzer.simplify(e);
    ASSERT_GT(analyzer.knowledge().budget, 0) << "rules that undo each other on " << show(e);
    const Expr value = analyzer.simplify_value(e);
    const ConstIntBound bound = analyzer.const_int_bound(e);
    const ModularSet set = analyzer.modular_set(e);
    smaller += simple->depth() < e->depth();
    for (int sample = 0; sample < 12; ++sample) {
      Bindings bindings;
      for (size_t v = 0; v < exprs.vars.size(); ++v)
        bindings[exprs.vars[v].get()] = ranges.of[v].first + exprs.below(ranges.of[v].second);
      if (evaluate(assumed, bindings) != 1) continue;
      const auto wanted = evaluate(e, bindings);
      if (!wanted) continue;
      ++compared;
      const std::string where = show(e) + "\n  assuming " + show(assumed) + "\n  became " + show(simple);
      ASSERT_EQ(evaluate(simple, bindings), wanted) << where;
      ASSERT_EQ(evaluate(value, bindings), wanted) << where;
      ASSERT_LE(bound.min_value, *wanted) << where;
      ASSERT_GE(bound.max_value, *wanted) << where;
      if (e->dtype.is_bool()) continue;
      if (set.coeff == 0)
        ASSERT_EQ(set.base, *wanted) << where;
      else
        ASSERT_EQ(floor_mod(*wanted - set.base, set.coeff), 0) << where;
    }
  }
  EXPECT_GT(compared, 20000);
  EXPECT_GT(smaller, 1000);
}

// Values that wrap: every dtype narrower than int64, over all of its values, some of them known to be small.
TEST(RandomValues, keep_what_they_wrap_to) {
  int compared = 0, smaller = 0;
  for (const DType dtype : {DType::int_(8), DType::uint(8), DType::int_(4), DType::uint(5), DType::int32()}) {
    RandomExprs exprs{.random = std::mt19937_64(dtype.bits),
                      .vars = {var("x", dtype), var("y", dtype), var("z", dtype)},
                      .dtype = dtype,
                      .largest_constant = std::min<int64_t>(20, max_integer(dtype))};
    for (int round = 0; round < 2500; ++round) {
      Analyzer analyzer;
      std::vector<bool> small;
      for (const Var& v : exprs.vars) {
        small.push_back(exprs.below(2) == 0);
        if (small.back()) analyzer.update(v, ConstIntBound{0, 5});
      }
      const Expr e = exprs.below(3) ? exprs.integer(3) : exprs.boolean(3);
      const Expr simple = analyzer.simplify(e);
      ASSERT_GT(analyzer.knowledge().budget, 0) << "rules that undo each other on " << show(e);
      const ConstIntBound bound = analyzer.const_int_bound(e);
      const ModularSet set = analyzer.modular_set(e);
      smaller += simple->depth() < e->depth();
      for (int sample = 0; sample < 12; ++sample) {
        Bindings bindings;
        for (size_t v = 0; v < exprs.vars.size(); ++v)
          bindings[exprs.vars[v].get()] =
              small[v] ? exprs.below(6) : wrap_integer(static_cast<int64_t>(exprs.random()), dtype);
        const auto wanted = evaluate(e, bindings);
        if (!wanted) continue;
        ++compared;
        const std::string where = dtype.str() + ": " + show(e) + "\n  became " + show(simple);
        ASSERT_EQ(evaluate(simple, bindings), wanted) << where;
        ASSERT_LE(bound.min_value, *wanted) << where;
        ASSERT_GE(bound.max_value, *wanted) << where;
        if (e->dtype.is_bool()) continue;
        if (set.coeff == 0)
          ASSERT_EQ(set.base, *wanted) << where;
        else
          ASSERT_EQ(floor_mod(*wanted - set.base, set.coeff), 0) << where;
      }
    }
  }
  EXPECT_GT(compared, 50000);
  EXPECT_GT(smaller, 1000);
}

INSTANTIATE_TEST_SUITE_P(seeds, RandomSimplification, testing::Range(1, 7));

}  // namespace
}  // namespace lathe::arith
