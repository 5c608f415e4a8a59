#include "arith/affine.h"

#include <gtest/gtest.h>

#include "arith/codes.h"
#include "arith/linear.h"
#include "arith/random_expr.h"
#include "ir/structural.h"
#include "ir/visit.h"

namespace lathe::arith {
namespace {

using namespace ir;

using Point = std::vector<int64_t>;

// Every point of a constant domain, in order.
std::vector<Point> points_of(const Domain& domain) {
  std::vector<Point> points{{}};
  for (const auto& [var, range] : domain) {
    std::vector<Point> longer;
    for (const Point& p : points)
      for (int64_t v = 0; v < *as_int(range.extent); ++v) {
        longer.push_back(p);
        longer.back().push_back(*as_int(range.min) + v);
      }
    points = std::move(longer);
  }
  return points;
}

Bindings bindings_of(const Domain& domain, const Point& point) {
  Bindings bindings;
  for (size_t i = 0; i < domain.size(); ++i) bindings[domain[i].first.get()] = point[i];
  return bindings;
}

Point values_of(const std::vector<Expr>& exprs, const Bindings& bindings) {
  Point values;
  for (const Expr& e : exprs) values.push_back(evaluate(e, bindings).value());
  return values;
}

class Affine : public testing::Test {
 protected:
  Analyzer analyzer;
  Var i = var("i"), j = var("j"), k = var("k");
  Var u = var("u"), v = var("v"), w = var("w");
  static Range range(int64_t extent, int64_t min = 0) { return {int64(min), int64(extent)}; }

  // Checks everything that the map claims against all points of the domain.
  AffineMap check(const std::vector<Expr>& indices, const Domain& domain, const Expr& predicate = {}) {
    auto detected = detect_affine(indices, domain, predicate, analyzer);
    EXPECT_TRUE(detected.ok()) << (detected.ok() ? "" : support::render(detected.diagnostics()));
    if (!detected.ok()) return {};
    const AffineMap map = *detected;
    const std::vector<Expr> normal = normalize(map, analyzer);
    std::vector<Expr> outputs;
    std::vector<Var> output_vars;
    for (size_t n = 0; n < indices.size(); ++n) {
      output_vars.push_back(var("o" + std::to_string(n)));
      outputs.push_back(output_vars.back());
    }
    std::vector<std::pair<Var, Expr>> back;
    if (map.injective) back = inverse(map, outputs, analyzer).value_or_throw();
    std::map<Point, Point> origin;
    for (const Point& point : points_of(domain)) {
      const Bindings at = bindings_of(domain, point);
      if (predicate && evaluate(predicate, at) == 0) continue;
      const Point image = values_of(indices, at);
      EXPECT_EQ(values_of(normal, at), image);
      const bool fresh = origin.emplace(image, point).second;
      if (map.injective) EXPECT_TRUE(fresh) << "two points of an injective map meet";
      Bindings outside;
      for (size_t n = 0; n < image.size(); ++n) outside[output_vars[n].get()] = image[n];
      for (size_t n = 0; n < back.size(); ++n) EXPECT_EQ(evaluate(back[n].second, outside), point[n]);
    }
    if (map.surjective) {
      size_t box = 1;
      for (const Expr& extent : map.extents) box *= static_cast<size_t>(*as_int(extent));
      EXPECT_EQ(origin.size(), box) << "a surjective map misses some indices";
    }
    return map;
  }
  std::string reason(const std::vector<Expr>& indices, const Domain& domain) {
    const auto detected = detect_affine(indices, domain, {}, analyzer);
    EXPECT_FALSE(detected.ok());
    if (detected.ok()) return "";
    EXPECT_EQ(detected.diagnostics()[0].code, code::not_affine);
    return detected.diagnostics()[0].message;
  }
};

TEST_F(Affine, split_fuse_and_reorder_are_bijective) {
  EXPECT_TRUE(check({i * 8 + j}, {{i, range(4)}, {j, range(8)}}).bijective());
  EXPECT_TRUE(check({floordiv(i, int64(8)), floormod(i, int64(8))}, {{i, range(32)}}).bijective());
  EXPECT_TRUE(check({j, i}, {{i, range(4)}, {j, range(8)}}).bijective());
  const Expr fused = i * 6 + j;
  EXPECT_TRUE(
      check({floordiv(fused, int64(9)), floormod(fused, int64(9))}, {{i, range(6)}, {j, range(6)}}).bijective());
  EXPECT_TRUE(check({floormod(floordiv(i, int64(4)), int64(3)), floordiv(i, int64(12)), floormod(i, int64(4))},
                    {{i, range(24)}})
                  .bijective());
}

TEST_F(Affine, counts_from_other_minima) {
  EXPECT_TRUE(check({i * 8 + j + 5}, {{i, range(4, 3)}, {j, range(8, -2)}}).bijective());
}

TEST_F(Affine, gaps_are_injective_only) {
  const AffineMap map = check({i * 3 + j}, {{i, range(4)}, {j, range(2)}});
  EXPECT_TRUE(map.injective);
  EXPECT_FALSE(map.surjective);
  const AffineMap uneven = check({floordiv(i, int64(4)), floormod(i, int64(4))}, {{i, range(10)}});
  EXPECT_TRUE(uneven.injective);
  EXPECT_FALSE(uneven.surjective);
}

TEST_F(Affine, a_forgotten_variable_is_not_injective) {
  const AffineMap map = check({i}, {{i, range(4)}, {j, range(3)}});
  EXPECT_FALSE(map.injective);
  EXPECT_TRUE(map.surjective);
  EXPECT_FALSE(inverse(map, {int64(0)}, analyzer).ok());
  EXPECT_EQ(inverse(map, {int64(0)}, analyzer).diagnostics()[0].code, code::not_injective);
}

TEST_F(Affine, predicates_cut_fusions) {
  const Expr fused = i * 8 + j;
  EXPECT_TRUE(check({fused}, {{i, range(4)}, {j, range(8)}}, fused < 27).bijective());
  const Var n = size_var("n");
  const Domain domain{{i, Range{int64(0), ceildiv(n, int64(8))}}, {j, range(8)}};
  const auto map = detect_affine({fused}, domain, fused < n, analyzer);
  ASSERT_TRUE(map.ok());
  EXPECT_TRUE(map->bijective());
  EXPECT_TRUE(analyzer.can_prove_equal(map->extents[0], n));
}

TEST_F(Affine, symbolic_extents_fuse_and_split) {
  const Var n = size_var("n"), m = size_var("m");
  const auto fused = detect_affine({i * m + j}, {{i, Range{int64(0), n}}, {j, Range{int64(0), m}}}, {}, analyzer);
  ASSERT_TRUE(fused.ok()) << support::render(fused.diagnostics());
  EXPECT_TRUE(fused->bijective());
  EXPECT_TRUE(analyzer.can_prove_equal(fused->extents[0], n * m));
}

TEST_F(Affine, refusals_name_the_reason) {
  EXPECT_NE(reason({i + j}, {{i, range(4)}, {j, range(3)}}).find("overlap"), std::string::npos);
  EXPECT_NE(reason({i * j}, {{i, range(4)}, {j, range(3)}}).find("multiplied by each other"), std::string::npos);
  EXPECT_NE(reason({i, i}, {{i, range(4)}}).find("not independent"), std::string::npos);
  EXPECT_NE(reason({int64(3) - i}, {{i, range(4)}}).find("counts down"), std::string::npos);
  const Buffer a = buffer("A", {int64(4)}, DType::int64());
  EXPECT_NE(reason({load(a, {i})}, {{i, range(4)}}).find("is not affine"), std::string::npos);
}

TEST_F(Affine, random_splits_and_fusions_round_trip) {
  std::mt19937 random(7);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  int bijective = 0;
  for (int round = 0; round < 300; ++round) {
    Domain domain;
    std::vector<std::pair<Expr, int64_t>> parts;  // expression and extent
    const char* names[] = {"i", "j", "k"};
    for (int64_t d = 0; d <= below(3); ++d) {
      const int64_t extent = std::vector<int64_t>{1, 2, 3, 4, 6, 8, 12}[static_cast<size_t>(below(7))];
      domain.emplace_back(var(names[d]), range(extent, below(2) ? 0 : below(5)));
      parts.emplace_back(domain.back().first - domain.back().second.min, extent);
    }
    for (int64_t step = below(4); step > 0; --step) {
      const size_t at = static_cast<size_t>(below(static_cast<int64_t>(parts.size())));
      if (below(2) && parts.size() > 1) {  // fuse two neighbours
        const size_t a = std::min(at, parts.size() - 2);
        const auto [x, n] = parts[a];
        const auto [y, m] = parts[a + 1];
        parts[a] = {x * m + y, n * m};
        parts.erase(parts.begin() + static_cast<ptrdiff_t>(a) + 1);
      } else {
        const auto [x, n] = parts[at];
        std::vector<int64_t> divisors;
        for (int64_t d = 1; d <= n; ++d)
          if (n % d == 0) divisors.push_back(d);
        const int64_t d = divisors[static_cast<size_t>(below(static_cast<int64_t>(divisors.size())))];
        parts[at] = {floordiv(x, int64(d)), n / d};
        parts.insert(parts.begin() + static_cast<ptrdiff_t>(at) + 1, {floormod(x, int64(d)), d});
      }
    }
    std::vector<Expr> indices;
    for (const auto& [e, extent] : parts) indices.push_back(e);
    bijective += check(indices, domain).bijective();
    if (HasFailure()) FAIL() << "in round " << round << ": " << show(indices[0]) << ", …";
  }
  EXPECT_EQ(bijective, 300) << "splits by divisors and fusions are bijective";
}

TEST(linear_coefficients, separates_variables_from_the_rest) {
  Analyzer analyzer;
  const Var i = var("i"), j = var("j"), n = size_var("n");
  const Var vars[] = {i, j};
  const auto form = linear_coefficients((i + 1) * n + j * 4 - n + 3, vars, analyzer);
  ASSERT_TRUE(form);
  EXPECT_TRUE(analyzer.can_prove_equal(form->coefficients[0], n));
  EXPECT_EQ(form->constant_coefficient(1), 4);
  EXPECT_TRUE(is_int(form->rest, 3));
  EXPECT_FALSE(linear_coefficients(i * j, vars, analyzer));
  EXPECT_FALSE(linear_coefficients(i * i + j, vars, analyzer));
  EXPECT_FALSE(linear_coefficients(floordiv(i, int64(2)), vars, analyzer));
}

}  // namespace
}  // namespace lathe::arith
