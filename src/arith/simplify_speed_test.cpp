// Prints how long typical index expressions take to simplify; asserts the results only.
#include <gtest/gtest.h>

#include <chrono>

#include "arith/analyzer.h"

namespace lathe::arith {
namespace {

using namespace ir;

TEST(SimplifySpeed, of_typical_indices) {
  const Var io = var("io"), ii = var("ii"), jo = var("jo"), ji = var("ji"), k = var("k"), n = size_var("n");
  const Buffer a = buffer("A", {int64(224), int64(224)}, DType::float32());
  const auto fused = [&] { return (io * 32 + ii) * 56 + jo * 8 + ji; };
  const auto row = [&] { return floordiv(fused(), int64(56)); };
  const auto column = [&] { return floormod(fused(), int64(56)); };
  struct Case {
    const char* name;
    std::function<Expr()> make;
  };
  const Case cases[] = {
      {"split and fused row", row},
      {"split and fused column", column},
      {"flat address", [&] { return row() * 56 + column(); }},
      {"tail guard", [&] { return io * 32 + ii < 1000; }},
      {"symbolic tail guard", [&] { return (io * 32 + ii) * n + k < n * 2048; }},
      {"padded load",
       [&] {
         const Expr y = row() + k - 1, x = column() - 1;
         const Expr inside = logical_and(logical_and(y >= 0, y < 224), logical_and(x >= 0, x < 224));
         return if_then_else(inside, load(a, {y, x}), constant(DType::float32(), 0.0));
       }},
  };
  Analyzer analyzer;
  for (const auto& [v, extent] : {std::pair{io, 64}, {ii, 32}, {jo, 7}, {ji, 8}, {k, 3}})
    analyzer.bind(v, Range{int64(0), int64(extent)});
  for (const Case& c : cases) {
    constexpr int rounds = 200;
    std::vector<Expr> inputs;
    for (int i = 0; i < rounds; ++i) inputs.push_back(c.make());  // no node met before
    const auto start = std::chrono::steady_clock::now();
    for (Expr& e : inputs) e = analyzer.simplify(e);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    std::printf("  %-24s %6.1f us\n", c.name, time.count() / rounds);
    EXPECT_TRUE(analyzer.simplify(inputs[0]).same_as(inputs[0]));
  }
  EXPECT_TRUE(analyzer.can_prove_equal(row(), io * 32 + ii));
  EXPECT_TRUE(analyzer.can_prove_equal(column(), jo * 8 + ji));
}

}  // namespace
}  // namespace lathe::arith
