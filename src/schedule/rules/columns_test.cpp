#include <gtest/gtest.h>

#include <random>

#include "schedule/rules/rules.h"
#include "schedule/rules/tile/tile.h"
#include "schedule/testing/programs.h"
#include "schedule/testing/rule_check.h"

namespace lathe::schedule {
namespace {

using testing::Builder;
using testing::last_remarks;
using testing::machine;
using testing::machines;
using testing::scheduled;

using Extents = std::vector<Expr>;

// Without axis `axis`.
std::vector<Expr> without(std::vector<Expr> list, size_t axis) {
  list.erase(list.begin() + static_cast<ptrdiff_t>(axis));
  return list;
}

// Indices of a reduction's result and its term, to those of what is reduced over `axis`.
std::vector<Expr> with_term(std::vector<Expr> i, size_t axis) {
  const Expr term = i.back();
  i.pop_back();
  i.insert(i.begin() + static_cast<ptrdiff_t>(axis), term);
  return i;
}

// softmax over one axis.
Function softmax_over(const Extents& shape, size_t axis, const std::vector<Var>& symbols = {}) {
  Builder b;
  const Buffer x = b.input("X", shape), y = b.output("Y", shape), e = b.inner("E", shape);
  const Buffer most = b.inner("M", without(shape, axis)), total = b.inner("S", without(shape, axis));
  const auto of = [&](const Buffer& buffer, const Extents& i) { return load(buffer, without(i, axis)); };
  b.max("max", most, {{"k", shape[axis]}}, [&](const Extents& i) { return load(x, with_term(i, axis)); });
  b.compute("exp", e, [&](const Extents& i) { return call(intrinsic::exp, load(x, i) - of(most, i)); });
  b.sum("sum", total, {{"k", shape[axis]}}, [&](const Extents& i) { return load(e, with_term(i, axis)); });
  b.compute("norm", y, [&](const Extents& i) { return div(load(e, i), of(total, i)); });
  return b.build(symbols);
}

// Each column less its mean, over the distance of it, times one number a column.
Function normalized_over(const Extents& shape, size_t axis) {
  Builder b;
  const Buffer x = b.input("X", shape), w = b.input("W", {shape.back()}), y = b.output("Y", shape);
  const Buffer total = b.inner("S", without(shape, axis)), squares = b.inner("Q", without(shape, axis));
  const Expr count = ir::cast(DType::float32(), shape[axis]);
  const auto centred = [&](const Extents& i) { return load(x, i) - div(load(total, without(i, axis)), count); };
  b.sum("sum", total, {{"k", shape[axis]}}, [&](const Extents& i) { return load(x, with_term(i, axis)); });
  b.sum("squares", squares, {{"k", shape[axis]}},
        [&](const Extents& i) { return centred(with_term(i, axis)) * centred(with_term(i, axis)); });
  b.compute("normal", y, [&](const Extents& i) {
    const Expr spread = div(load(squares, without(i, axis)), count) + testing::f32(0.25);
    return div(centred(i), call(intrinsic::sqrt, spread)) * load(w, {i.back()});
  });
  return b.build();
}

Extents extents(const std::vector<int64_t>& list) {
  Extents shape;
  for (const int64_t extent : list) shape.push_back(int64(extent));
  return shape;
}

TEST(columns, takes_softmax_over_channels) {
  for (const auto& [bits, registers] : machines)
    for (const int64_t width : {3, 7, 16, 19, 48, 64, 67, 256})
      EXPECT_EQ(scheduled(softmax_over(extents({2, 5, 3, width}), 1), machine(bits, registers), 1e-5), "columns")
          << bits << " bits, " << width << last_remarks;
}

TEST(columns, takes_normalisation_of_columns_with_what_follows) {
  for (const auto& [bits, registers] : machines)
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{9, 32}, {1, 9, 16}, {3, 21, 64}, {2, 7, 130}, {1, 13, 2}})
      EXPECT_EQ(scheduled(normalized_over(extents(shape), shape.size() - 2), machine(bits, registers), 1e-4), "columns")
          << bits << " bits, " << shape.back() << last_remarks;
}

// What is summed in parts, where it divides into them, and what does not stay in the second cache.
TEST(columns, sums_long_columns_in_parts) {
  for (const int64_t length : {600, 1021, 2048}) {
    EXPECT_EQ(scheduled(normalized_over(extents({1, length, 16}), 1), machine(512, 32), 1e-4), "columns") << length;
    target::Target small = machine(512, 32);
    small.caches = {{.level = 1, .bytes = 8 << 10}, {.level = 2, .bytes = 64 << 10}};
    EXPECT_EQ(scheduled(normalized_over(extents({1, length, 64}), 1), small, 1e-4), "columns") << length;
  }
}

TEST(columns, takes_sizes_that_only_the_run_knows) {
  const Var n = ir::size_var("n"), m = ir::size_var("m");
  for (const int64_t rows : {1, 6, 40})
    for (const int64_t lanes : {0, 1, 33}) {
      EXPECT_EQ(
          scheduled(softmax_over({n, int64(5), m}, 1, {n, m}), machine(256, 16), 1e-5, {{"n", rows}, {"m", lanes}}),
          "columns")
          << rows << ", " << lanes << last_remarks;
      EXPECT_EQ(
          scheduled(softmax_over({int64(2), n, m}, 1, {n, m}), machine(512, 32), 1e-5, {{"n", rows}, {"m", lanes}}),
          "columns")
          << rows << ", " << lanes << last_remarks;
    }
}

// Sums of an unknown number of terms have their start in a block of its own: there may be none.
TEST(columns, takes_sums_that_start_apart) {
  for (const int64_t channels : {1, 16, 33}) {
    const Function f = testing::from_text(fmt::format(R"(
@T.prim_func
def main(x: T.handle, y: T.handle, n: T.int64(is_size_var=True)):
    X = T.match_buffer(x, (2, n, {0}), "float32")
    Y = T.match_buffer(y, (2, n, {0}), "float32")
    S = T.alloc_buffer((2, {0}), "float32")
    for i, c in T.grid(2, {0}):
        with T.block("start"):
            vi, vc = T.axis.remap("SS", [i, c])
            S[vi, vc] = T.float32(0)
    for i, c, k in T.grid(2, {0}, n):
        with T.block("sum"):
            vi, vc, vk = T.axis.remap("SSR", [i, c, k])
            S[vi, vc] = S[vi, vc] + X[vi, vk, vc]
    for i, p, c in T.grid(2, n, {0}):
        with T.block("centre"):
            vi, vp, vc = T.axis.remap("SSS", [i, p, c])
            Y[vi, vp, vc] = T.max(X[vi, vp, vc] - S[vi, vc] / T.float32(n), T.float32(0))
)",
                                                      channels));
    for (const auto& [bits, registers] : machines)
      for (const int64_t n : {1, 7, 300}) {
        const std::string rule = scheduled(f, machine(bits, registers), 1e-4, {{"n", n}});
        EXPECT_EQ(rule, channels == 1 ? rule : "columns") << channels << " of " << n << last_remarks;
      }
  }
}

// What follows the sums takes a function of each that is computed by itself.
TEST(columns, takes_functions_of_each_sum) {
  const Function f = testing::from_text(R"(
@T.prim_func
def main(x: T.handle, m: T.Buffer((3, 40), "float32"), y: T.Buffer((3, 40), "float32"), n: T.int64(is_size_var=True)):
    X = T.match_buffer(x, (3, n, 40), "float32")
    S = T.alloc_buffer((3, 40), "float32")
    L = T.alloc_buffer((3, 40), "float32")
    for i, j in T.grid(3, 40):
        with T.block("start"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[vi, vj] = T.float32(0)
    for i, j, k in T.grid(3, 40, n):
        with T.block("sum"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            S[vi, vj] = S[vi, vj] + T.exp(X[vi, vk, vj] - m[vi, vj])
    for i, j in T.grid(3, 40):
        with T.block("log"):
            vi, vj = T.axis.remap("SS", [i, j])
            L[vi, vj] = T.log(S[vi, vj])
    for i, j in T.grid(3, 40):
        with T.block("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = L[vi, vj] + m[vi, vj]
)");
  for (const auto& [bits, registers] : machines)
    for (const int64_t n : {1, 2, 33})
      EXPECT_EQ(scheduled(f, machine(bits, registers), 1e-5, {{"n", n}}), "columns") << last_remarks;
}

TEST(columns, leaves_rows_to_reductions) {
  EXPECT_EQ(scheduled(softmax_over(extents({3, 40}), 1), machine(512, 32), 1e-5), "reduction") << last_remarks;
}

TEST(columns, go_side_by_side_by_four_cache_lines) {
  EXPECT_EQ(vectors_down_columns(240, 256, machine(256, 16)), 8);
  EXPECT_EQ(vectors_down_columns(12, 256, machine(256, 16)), 6) << "three whole lines";
  EXPECT_EQ(vectors_down_columns(20, 256, machine(256, 16)), 4) << "five would be two lines and a half";
  EXPECT_EQ(vectors_down_columns(7, 256, machine(256, 16)), 1);
  EXPECT_EQ(vectors_down_columns(240, 256, machine(256, 16), 5), 4) << "what fits";
  EXPECT_EQ(vectors_down_columns(240, 512, machine(512, 32)), 4);
  EXPECT_EQ(vectors_down_columns(0, 512, machine(512, 32)), 1);
  for (const auto& [bits, registers] : machines)
    for (const int64_t width : {41, 64, 80, 96, 160, 256})
      for (const int64_t length : {2, 5, 300}) {
        EXPECT_EQ(scheduled(softmax_over(extents({length, width}), 0), machine(bits, registers), 1e-4), "columns")
            << length << "x" << width << last_remarks;
        Builder b;
        const Buffer x = b.input("X", extents({length, width})), y = b.output("Y", extents({width}));
        b.sum("sum", y, {{"k", int64(length)}}, [&](const Extents& i) { return load(x, {i.back(), i[0]}); });
        EXPECT_EQ(scheduled(b.build(), machine(bits, registers), 1e-5), "pool") << length << "x" << width;
      }
}

TEST(columns, compute_the_same_for_random_shapes) {
  std::mt19937 random(20261127);
  const auto any = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(1, most)(random); };
  for (int trial = 0; trial < 120; ++trial) {
    std::vector<int64_t> shape;
    for (int64_t rank = 1 + any(3); rank > 0; --rank) shape.push_back(any(4) == 1 ? 1 : any(rank == 1 ? 80 : 7));
    const auto axis = static_cast<size_t>(any(static_cast<int64_t>(shape.size()))) - 1;
    const auto& [bits, registers] = machines[static_cast<size_t>(any(3)) - 1];
    const bool is_softmax = any(2) == 1;
    const Function f = is_softmax ? softmax_over(extents(shape), axis) : normalized_over(extents(shape), axis);
    const std::string taken = scheduled(f, machine(bits, registers), 1e-4);
    EXPECT_TRUE(taken == "columns" || taken == "reduction" || taken == "fallback" || taken == "elementwise")
        << taken << " over axis " << axis << " of " << fmt::format("{}", fmt::join(shape, "x"));
  }
}

}  // namespace
}  // namespace lathe::schedule
