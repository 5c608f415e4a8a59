// Comparisons of numbers of lanes with what is the same for all of them, near the ends of 64 bits too.
#include <gtest/gtest.h>

#include <limits>

#include "codegen/emit/ramp.h"
#include "codegen/llvm/compile.h"
#include "codegen/llvm/run_kernel_test.h"

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

// Where the lanes' numbers begin.
enum class Start { counted, read, both_read };

// B[8 i + l] = (start + stride * l) compared with C[i].
Function compared(int how, int64_t stride, Start start, int64_t rows, int64_t lanes) {
  const Buffer b = buffer("B", {int64(rows * lanes)}, DType::boolean()),
               c = buffer("C", {int64(rows)}, DType::int_(64)), d = buffer("D", {int64(rows)}, DType::int_(64));
  const Var i = var("i");
  const Expr from = start == Start::counted ? Expr(i) * 3 - 7 : load(d, {i});
  const Expr ramp = make<Ramp>(from, int64(stride), lanes), other = make<Broadcast>(load(c, {i}), lanes);
  const Expr left = start == Start::both_read ? other : ramp, right = start == Start::both_read ? ramp : other;
  const Expr results[] = {eq(left, right), ne(left, right), left<right, left <= right, left> right, left >= right};
  const Stmt store =
      make<BufferStore>(b, results[how], std::vector<Expr>{make<Ramp>(Expr(i) * lanes, int64(1), lanes)}, Expr());
  return prim_func({b, c, d}, make<For>(i, int64(0), int64(rows), ForKind::serial, store));
}

bool holds(int how, int64_t a, int64_t b) {
  const bool all[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
  return all[how];
}

TEST(ramps, compare_as_their_elements_do) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  const std::vector<int64_t> numbers = {0,         1,       5,         -3,           17,        most, most - 3, least,
                                        least + 2, 1 << 20, 1LL << 31, -(1LL << 31), 1LL << 40, 12,   2,        -40};
  const auto rows = static_cast<int64_t>(numbers.size());
  for (int how = 0; how < 6; ++how)
    for (const int64_t stride : {1, -1, 3, 1 << 17})
      for (const Start start : {Start::counted, Start::read, Start::both_read})
        for (const int64_t lanes : {4, 8, 24}) {
          const auto loaded = test::load({{"compare", compared(how, stride, start, rows, lanes)}});
          std::vector<uint8_t> out(static_cast<size_t>(rows * lanes));
          std::vector<int64_t> c = numbers, d(numbers.rbegin(), numbers.rend());
          ASSERT_EQ(test::call(loaded, 0, {out.data(), c.data(), d.data()}), 0);
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t lane = 0; lane < lanes; ++lane) {
              const auto first = static_cast<uint64_t>(start == Start::counted ? 3 * i - 7 : d[static_cast<size_t>(i)]);
              const auto ramp = static_cast<int64_t>(first + static_cast<uint64_t>(stride * lane));
              const int64_t other = c[static_cast<size_t>(i)];
              const bool wanted = start == Start::both_read ? holds(how, other, ramp) : holds(how, ramp, other);
              ASSERT_EQ(out[static_cast<size_t>(i * lanes + lane)] != 0, wanted)
                  << "row " << i << ", lane " << lane << " of " << lanes << ", stride " << stride << ", comparison "
                  << how;
            }
        }
}

TEST(ramps, are_found_in_sums_and_multiples) {
  const Var i = var("i");
  const Expr ramp = make<Ramp>(Expr(i), int64(2), int64_t{4}), ones = make<Broadcast>(int64(3), int64_t{4});
  const auto found = as_ramp((ramp - ones) * ones + ramp);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->stride, 8);
  EXPECT_FALSE(as_ramp(ramp * ramp).has_value());
}

}  // namespace
}  // namespace lathe::codegen
