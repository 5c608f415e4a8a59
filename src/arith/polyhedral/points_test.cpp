#include "arith/polyhedral/points.h"

#include <gtest/gtest.h>

#include <random>

#include "ir/build.h"
#include "ir/visit.h"

namespace lathe::arith {
namespace {

using namespace ir;  // NOLINT

Expr within(const Var& v, int64_t low, int64_t high) { return logical_and(v >= low, v <= high); }

int64_t evaluate(const Expr& e, const std::unordered_map<Var, int64_t>& values);

int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// By hand, so that no other part of this room is trusted.
int64_t evaluate(const Expr& e, const std::unordered_map<Var, int64_t>& values) {
  const auto both = [&](const auto* n, auto operation) {
    return static_cast<int64_t>(operation(evaluate(n->a, values), evaluate(n->b, values)));
  };
  if (const auto value = as_int(e)) return *value;
  if (const auto* v = e.as<VarNode>()) return values.at(Var(v));
  if (const auto* n = e.as<Add>()) return both(n, std::plus<>());
  if (const auto* n = e.as<Sub>()) return both(n, std::minus<>());
  if (const auto* n = e.as<Mul>()) return both(n, std::multiplies<>());
  if (const auto* n = e.as<FloorDiv>()) return both(n, floor_quotient);
  if (const auto* n = e.as<FloorMod>()) return both(n, [](auto a, auto b) { return a - floor_quotient(a, b) * b; });
  if (const auto* n = e.as<Min>()) return both(n, [](auto a, auto b) { return std::min(a, b); });
  if (const auto* n = e.as<Max>()) return both(n, [](auto a, auto b) { return std::max(a, b); });
  if (const auto* n = e.as<LT>()) return both(n, std::less<>());
  if (const auto* n = e.as<LE>()) return both(n, std::less_equal<>());
  if (const auto* n = e.as<GT>()) return both(n, std::greater<>());
  if (const auto* n = e.as<GE>()) return both(n, std::greater_equal<>());
  if (const auto* n = e.as<EQ>()) return both(n, std::equal_to<>());
  if (const auto* n = e.as<NE>()) return both(n, std::not_equal_to<>());
  if (const auto* n = e.as<And>()) return both(n, std::logical_and<>());
  if (const auto* n = e.as<Or>()) return both(n, std::logical_or<>());
  if (const auto* n = e.as<Not>()) return !evaluate(n->a, values);
  if (const auto* n = e.as<Select>())
    return evaluate(evaluate(n->condition, values) ? n->true_value : n->false_value, values);
  throw std::logic_error("an expression that the test does not make");
}

class RandomCondition {
 public:
  explicit RandomCondition(uint64_t seed, std::vector<Var> variables)
      : random_(seed), variables_(std::move(variables)) {}

  Expr condition(int depth) {
    const size_t kind = pick(depth > 0 ? 9 : 6);
    if (kind == 6) return logical_and(condition(depth - 1), condition(depth - 1));
    if (kind == 7) return logical_or(condition(depth - 1), condition(depth - 1));
    if (kind == 8) return logical_not(condition(depth - 1));
    const Expr a = value(2), b = value(1);
    const Expr compared[] = {lt(a, b), le(a, b), gt(a, b), ge(a, b), eq(a, b), ne(a, b)};
    return compared[kind];
  }

 private:
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  Expr value(int depth) {
    switch (pick(depth > 0 ? 9 : 2)) {
      case 0:
        return int64(static_cast<int64_t>(pick(13)) - 6);
      case 1:
        return variables_[pick(variables_.size())];
      case 2:
        return value(depth - 1) + value(depth - 1);
      case 3:
        return value(depth - 1) - value(depth - 1);
      case 4:
        return value(depth - 1) * int64(static_cast<int64_t>(pick(7)) - 3);
      case 5:
        return floordiv(value(depth - 1), int64(1 + static_cast<int64_t>(pick(4))));
      case 6:
        return floormod(value(depth - 1), int64(1 + static_cast<int64_t>(pick(4))));
      case 7:
        return min(value(depth - 1), value(depth - 1));
      default:
        return max(value(depth - 1), value(depth - 1));
    }
  }
  std::mt19937_64 random_;
  std::vector<Var> variables_;
};

// Calls `visit` with every point of the box [-3, 3] in each variable.
void each_point(const std::vector<Var>& variables,
                support::function_ref<void(std::unordered_map<Var, int64_t>&)> visit) {
  std::unordered_map<Var, int64_t> values;
  const std::function<void(size_t)> descend = [&](size_t at) {
    if (at == variables.size()) return visit(values);
    for (int64_t value = -3; value <= 3; ++value) {
      values[variables[at]] = value;
      descend(at + 1);
    }
  };
  descend(0);
}

Expr in_box(const std::vector<Var>& variables) {
  Expr condition = boolean(true);
  for (const Var& v : variables) condition = logical_and(condition, within(v, -3, 3));
  return condition;
}

TEST(points, of_random_conditions_are_those_of_trial) {
  const std::vector<Var> variables{var("a"), var("b"), var("c")};
  int with_point = 0, without = 0, spent = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Expr condition = logical_and(in_box(variables), RandomCondition(seed, variables).condition(3));
    bool any = false;
    each_point(variables, [&](auto& values) { any = any || evaluate(condition, values); });
    const PointSearch search = find_point(condition);
    if (search.outcome == PointSearch::spent) {
      ++spent;
      continue;
    }
    ASSERT_EQ(search.outcome, any ? PointSearch::found : PointSearch::none) << "seed " << seed;
    if (any) {
      std::unordered_map<Var, int64_t> values = search.values;
      for (const Var& v : variables) values.try_emplace(v, 0);
      EXPECT_TRUE(evaluate(condition, values)) << "seed " << seed;
    }
    ++(any ? with_point : without);
  }
  fmt::print("{} with a point, {} without, {} over the budget\n", with_point, without, spent);
  EXPECT_GT(with_point, 50);
  EXPECT_GT(without, 30);
  EXPECT_LT(spent, 15);
}

TEST(points, not_covered_are_those_of_trial) {
  const std::vector<Var> shown{var("a"), var("b")}, hidden{var("h")};
  std::vector<Var> all = shown;
  all.push_back(hidden[0]);
  int covered = 0, uncovered = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto projection = [&](uint64_t which, int depth) {
      return Projection{logical_and(in_box(all), RandomCondition(seed * 3 + which, all).condition(depth)), hidden};
    };
    const Projection part = projection(0, 2);
    const std::vector<Projection> whole{projection(1, 2), projection(2, 2)};
    const auto holds = [&](const Projection& p, std::unordered_map<Var, int64_t> values) {
      for (int64_t h = -3; h <= 3; ++h) {
        values[hidden[0]] = h;
        if (evaluate(p.condition, values)) return true;
      }
      return false;
    };
    const auto outside = [&](const std::unordered_map<Var, int64_t>& values) {
      return holds(part, values) && !holds(whole[0], values) && !holds(whole[1], values);
    };
    bool any = false;
    each_point(shown, [&](auto& values) { any = any || outside(values); });
    const PointSearch search = find_uncovered(part, whole);
    if (search.outcome == PointSearch::spent) continue;
    ASSERT_EQ(search.outcome, any ? PointSearch::found : PointSearch::none) << "seed " << seed;
    if (any) EXPECT_TRUE(outside(search.values)) << "seed " << seed;
    ++(any ? uncovered : covered);
  }
  EXPECT_GT(covered, 40);
  EXPECT_GT(uncovered, 40);
}

TEST(points, hold_for_every_value_of_a_symbol) {
  const Var i = var("i"), j = var("j"), n = size_var("n"), m = var("m");
  // Two different rows of n columns never meet, whatever n; nothing is known of i * n as such.
  const Expr apart = logical_and(logical_and(i < j, i >= n), j < n);
  EXPECT_EQ(find_point(apart).outcome, PointSearch::none);
  EXPECT_EQ(find_point(n < 0).outcome, PointSearch::none) << "a size is at least zero";
  EXPECT_EQ(find_point(m < 0).outcome, PointSearch::found);
}

TEST(points, that_depend_on_the_unknown_prove_nothing) {
  const Var i = var("i"), j = var("j"), n = size_var("n");
  EXPECT_EQ(find_point(logical_and(i * n < 3, i * n > 3)).outcome, PointSearch::none) << "one product is one integer";
  const PointSearch search = find_point(eq(i * n, j));
  EXPECT_EQ(search.outcome, PointSearch::undecided);
  EXPECT_TRUE(structural_equal(search.obstacle, i * n));
  // Between two loads of one element it may have been written.
  const Buffer memory = buffer("memory", {int64(8)}, DType::int64());
  const Expr element = load(memory, {i});
  EXPECT_EQ(find_point(logical_and(element < 3, element > 3)).outcome, PointSearch::undecided);
  // What covers only perhaps does not cover; what is covered only perhaps must be covered in any case.
  const Projection some{within(i, 0, 3), {}}, perhaps{logical_and(within(i, 0, 3), element < 3), {}};
  EXPECT_EQ(find_uncovered(perhaps, {some}).outcome, PointSearch::none);
  EXPECT_EQ(find_uncovered(some, {perhaps}).outcome, PointSearch::undecided);
  EXPECT_EQ(find_uncovered(some, {perhaps, some}).outcome, PointSearch::none);
}

TEST(points, of_conditions_that_share_nothing_are_found_apart) {
  // Twelve axes, each bounded by a selection: together far beyond the budget, one by one a trifle.
  Expr condition = boolean(true), nowhere = boolean(true);
  for (int axis = 0; axis < 12; ++axis) {
    const Var i = var("i"), j = var("j"), n = size_var("n"), m = size_var("m");
    const Expr extent = select(eq(n, int64(1)), m, n);
    const Expr bounds =
        logical_and(logical_and(i >= 0, i < extent), logical_and(j >= 0, j < floordiv(extent, int64(7))));
    condition = logical_and(condition, logical_and(bounds, i < j));
    nowhere = logical_and(nowhere, axis == 5 ? logical_and(bounds, j > extent) : bounds);
  }
  const PointSearch search = find_point(condition);
  ASSERT_EQ(search.outcome, PointSearch::found);
  EXPECT_EQ(search.values.size(), 48u);
  EXPECT_TRUE(evaluate(condition, search.values));
  EXPECT_EQ(find_point(nowhere).outcome, PointSearch::none);
  EXPECT_EQ(find_point(boolean(true)).outcome, PointSearch::found);
  EXPECT_EQ(find_point(boolean(false)).outcome, PointSearch::none);
}

// An extent as a network derives it from an image's: each layer halves what is left.
Expr after_layers(Expr extent, int layers) {
  for (int layer = 0; layer < layers; ++layer) extent = max(floordiv(extent + 1, int64(2)) - 2, int64(0));
  return extent;
}

TEST(points, of_extents_that_are_derived_from_others_are_soon_shown_to_be_none) {
  const Var height = size_var("height"), width = size_var("width");
  const Expr rows = after_layers(height, 4), columns = after_layers(width, 4);
  Expr condition = boolean(true);
  std::vector<Expr> positions;
  for (int side = 0; side < 2; ++side) {
    const Var y = var("y"), x = var("x"), within = var("within");
    condition = logical_and(condition, logical_and(logical_and(y >= 0, y < floordiv(rows + 5, int64(6))),
                                                   logical_and(within >= 0, within < 6)));
    condition = logical_and(condition, logical_and(y * 6 + within < rows, logical_and(x >= 0, x < columns)));
    positions.insert(positions.end(), {y * 6 + within, x, y});
  }
  condition = logical_and(condition, logical_and(eq(positions[0], positions[3]), eq(positions[1], positions[4])));
  const PointBudget small{.operations = 20'000};
  EXPECT_EQ(find_point(logical_and(condition, positions[2] < positions[5]), small).outcome, PointSearch::none);
  // What the extents are decides here: 61 rows are the fewest of which one is left.
  const Expr last = after_layers(height, 4) > 0;
  EXPECT_EQ(find_point(logical_and(last, height < 61)).outcome, PointSearch::none);
  const PointSearch search = find_point(logical_and(last, height < 62));
  ASSERT_EQ(search.outcome, PointSearch::found);
  EXPECT_TRUE(evaluate(logical_and(last, height < 62), search.values));
}

TEST(points, are_not_looked_for_beyond_the_budget) {
  const Var i = var("i"), j = var("j");
  const Expr condition = logical_and(logical_and(within(i, 0, 1000), within(j, 0, 1000)),
                                     eq(floormod(i * 7, int64(31)), floormod(j * 11, int64(37)) + 3));
  EXPECT_EQ(find_point(condition, {.operations = 10}).outcome, PointSearch::spent);
  EXPECT_EQ(find_point(condition).outcome, PointSearch::found);
}

}  // namespace
}  // namespace lathe::arith
