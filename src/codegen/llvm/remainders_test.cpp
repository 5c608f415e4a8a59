// Remainders of float32, in vectors of many lengths: exact, by fmod.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "codegen/llvm/compile.h"
#include "codegen/llvm/run_kernel_test.h"
#include "ir/dtype.h"

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

using Pair = std::pair<float, float>;

// Multiples of the divisor and what lies next to them, by quotients of all sizes.
std::vector<Pair> near_multiples(std::mt19937_64& random) {
  std::vector<Pair> pairs;
  std::uniform_real_distribution<float> significand(1.0f, 2.0f);
  for (int power = 0; power < 127; power += power < 34 ? 1 : 13)
    for (int k = 0; k < 40; ++k) {
      const float divisor = std::ldexp(significand(random), static_cast<int>(random() % 20) - 30);
      const double quotient = std::floor(std::ldexp(significand(random), power));
      const auto multiple = static_cast<float>(quotient * divisor);
      for (const float x : {std::nextafter(multiple, 0.0f), multiple, std::nextafter(multiple, INFINITY)})
        pairs.emplace_back(random() % 2 ? x : -x, random() % 2 ? divisor : -divisor);
    }
  return pairs;
}

std::vector<Pair> special() {
  std::vector<Pair> pairs;
  const float all[] = {0.0f, -0.0f, 1.0f, -2.5f, 1e-45f, -3e-39f, 3.4e38f, INFINITY, -INFINITY, NAN};
  for (const float a : all)
    for (const float b : all) pairs.emplace_back(a, b);
  return pairs;
}

void expect_exact(const std::vector<Pair>& pairs, int64_t lanes, const char* target_name) {
  const int64_t count = static_cast<int64_t>(pairs.size()) / lanes, n = count * lanes;
  const Buffer a = buffer("A", {int64(n)}, DType::float32()), b = buffer("B", {int64(n)}, DType::float32());
  const Buffer c = buffer("C", {int64(n)}, DType::float32());
  const Var i = var("i");
  const Expr at = lanes == 1 ? Expr(i) : make<Ramp>(Expr(i) * lanes, int64(1), lanes);
  const auto element = [&](const Buffer& from) { return make<BufferLoad>(from, std::vector<Expr>{at}, Expr()); };
  const Stmt store = make<BufferStore>(c, mod(element(a), element(b)), std::vector<Expr>{at}, Expr());
  const Function f = prim_func({a, b, c}, make<For>(i, int64(0), int64(count), ForKind::serial, store));
  const auto loaded = test::load({{"remainder", f}}, target::parse_target(target_name).value_or_throw());
  std::vector<float> x, y, made(static_cast<size_t>(n));
  for (const auto& [dividend, divisor] : pairs) x.push_back(dividend), y.push_back(divisor);
  ASSERT_EQ(test::call(loaded, 0, {x.data(), y.data(), made.data()}), 0);
  for (size_t k = 0; k < made.size(); ++k) {
    const float expected = std::fmod(x[k], y[k]);
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(made[k])) << x[k] << " by " << y[k];
    else
      ASSERT_EQ(std::bit_cast<uint32_t>(made[k]), std::bit_cast<uint32_t>(expected))
          << x[k] << " by " << y[k] << ": " << made[k] << ", not " << expected << "; " << lanes << " lanes";
  }
}

TEST(remainders, of_float32_are_exact) {
  std::mt19937_64 random(11);
  for (const char* target_name : {"native", "x86-64-v2", "x86-64-v3"})
    for (const int64_t lanes : {1, 2, 3, 4, 8, 16, 20}) {
      expect_exact(near_multiples(random), lanes, target_name);
      expect_exact(special(), lanes, target_name);
    }
}

}  // namespace
}  // namespace lathe::codegen
