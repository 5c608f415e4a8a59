// Conversions of float32 to integers, in vectors of many lengths: what is out of range, and what is no number.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "codegen/llvm/compile.h"
#include "codegen/llvm/run_kernel_test.h"
#include "ir/dtype.h"

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

std::vector<float> hard_numbers() {
  std::vector<float> all = {0.0f, -0.0f, NAN, INFINITY, -INFINITY, 0.99f, -0.99f, 255.5f, -128.5f, 3e9f, -3e9f, 1e30f};
  for (const int power : {7, 8, 15, 16, 31, 32, 63, 64}) {
    const float at = std::ldexp(1.0f, power);
    for (const float x : {std::nextafter(at, 0.0f), at, std::nextafter(at, INFINITY)})
      for (const float sign : {1.0f, -1.0f}) all.push_back(sign * x);
  }
  return all;
}

// The nearest of the integers of 32 bits, or of 64 where the type has no fewer than them and no sign, or more; then its
// low bits.
int64_t converted(float x, DType to) {
  if (std::isnan(x)) return 0;
  const bool is_narrow = to.bits < 32 || (to.bits == 32 && to.is_int());
  if (to == DType::uint(64) && x >= 0x1p63f) return x >= 0x1p64f ? -1 : static_cast<int64_t>(static_cast<uint64_t>(x));
  const double least = std::ldexp(-1.0, is_narrow ? 31 : 63);
  if (double{x} >= -least)
    return wrap_integer(is_narrow ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int64_t>::max(), to);
  return wrap_integer(static_cast<int64_t>(std::max(double{x}, least)), to);
}

// Some numbers are hard, or all, so that vectors are of both kinds.
TEST(casts, of_what_is_out_of_range_are_the_nearest) {
  const std::vector<float> hard = hard_numbers();
  const auto count = static_cast<int64_t>(hard.size());
  for (const char* target_name : {"native", "x86-64-v2", "x86-64-v3"})
    for (const DType to : {DType::int_(8), DType::uint(8), DType::int_(16), DType::uint(16), DType::int_(32),
                           DType::uint(32), DType::int_(64), DType::uint(64)})
      for (const int64_t lanes : {1, 2, 3, 4, 7, 8, 12, 16, 20, 32})
        for (const int64_t every : {1, 5}) {
          const int64_t n = lanes * count;
          const Buffer a = buffer("A", {int64(n)}, DType::float32()), b = buffer("B", {int64(n)}, to);
          const Var i = var("i");
          const Expr at = lanes == 1 ? Expr(i) : make<Ramp>(Expr(i) * lanes, int64(1), lanes);
          const Expr from = make<BufferLoad>(a, std::vector<Expr>{at}, Expr());
          const int width = static_cast<int>(lanes);
          const Stmt store =
              make<BufferStore>(b, cast(lanes == 1 ? to : to.with_lanes(width), from), std::vector<Expr>{at}, Expr());
          const Function f = prim_func({a, b}, make<For>(i, int64(0), int64(count), ForKind::serial, store));
          const auto loaded = test::load({{"convert", f}}, target::parse_target(target_name).value_or_throw());
          std::vector<float> in(static_cast<size_t>(n));
          for (int64_t k = 0; k < n; ++k)
            in[static_cast<size_t>(k)] =
                k % every == 0 ? hard[static_cast<size_t>(k / every % count)] : static_cast<float>(k) - 40.25f;
          TensorBuffer out = TensorBuffer::zeros(to, {n});
          ASSERT_EQ(test::call(loaded, 0, {in.data(), out.bytes.data()}), 0);
          for (int64_t k = 0; k < n; ++k)
            ASSERT_EQ(out.int_at(k), converted(in[static_cast<size_t>(k)], to))
                << in[static_cast<size_t>(k)] << " to " << to.str() << ", " << lanes << " lanes, " << target_name;
        }
}

}  // namespace
}  // namespace lathe::codegen
