#include "schedule/rules/tile/tile_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "schedule/testing/programs.h"
#include "schedule/testing/rule_check.h"

namespace lathe::schedule {
namespace {

using testing::machine;

using testing::decided;
std::string decided(const target::Target& target, int64_t m, int64_t n, int64_t k, const char* from, const char* to) {
  return decided(testing::matmul(int64(m), int64(n), int64(k)), target, from, to);
}

std::string tile_of(const target::Target& target, int64_t m, int64_t n, int64_t k = 8) {
  return decided(target, m, n, k, "vectors=", "rows=");
}

// Beside the sums, a row of weights and what multiplies it: with none to spare code generation spills.
TEST(tile_shape, leaves_a_register_free) {
  EXPECT_EQ(tile_of(machine(256, 16), 28, 8), "vectors=1 rows=10");
  EXPECT_EQ(tile_of(machine(256, 16), 36, 16), "vectors=2 rows=6");
  EXPECT_EQ(tile_of(machine(256, 16), 36, 24), "vectors=3 rows=3");
  EXPECT_EQ(tile_of(machine(512, 32), 28, 32), "vectors=2 rows=14");
  EXPECT_EQ(tile_of(machine(512, 32), 36, 48), "vectors=3 rows=9");
}

TEST(tile_shape, has_three_vectors_where_that_is_all) {
  for (const int64_t rows : {1, 5, 49}) {
    EXPECT_EQ(tile_of(machine(256, 16), rows, 24).substr(0, 9), "vectors=3") << rows;
    EXPECT_NE(tile_of(machine(256, 16), rows, 72).substr(0, 9), "vectors=3") << rows << ": whole panels of two";
  }
}

// What is passed over once for each cut of the lanes, and the second cache does not keep.
TEST(tile_shape, is_wide_and_low_where_fewer_cuts_pass_over_much) {
  const target::Target many = machine(512, 32);
  EXPECT_EQ(tile_of(many, 2100, 256), "vectors=4 rows=6");
  EXPECT_EQ(tile_of(many, 70, 4096), "vectors=4 rows=5") << "equal tiles";
  EXPECT_EQ(tile_of(many, 280, 128), "vectors=2 rows=14") << "the second cache keeps it";
  EXPECT_EQ(tile_of(many, 2100, 96), "vectors=2 rows=14") << "wide cuts leave half of one over";
  EXPECT_EQ(tile_of(many, 2100, 511), "vectors=4 rows=6") << "little beside seven";
  EXPECT_EQ(tile_of(many, 42, 8192), "vectors=2 rows=14") << "few rows";
  EXPECT_EQ(tile_of(machine(128, 16), 2100, 8), "vectors=2 rows=6") << "few registers";
  EXPECT_EQ(tile_of(many, 2100, 256, 1984), "vectors=4 rows=6") << "weights of a cut that the second cache holds";
  EXPECT_EQ(tile_of(many, 2100, 256, 8128), "vectors=2 rows=14") << "and that it does not hold";
}

// Three rows by four vectors have seven loads for twelve products, six by two have eight.
TEST(tile_shape, is_wide_and_low_where_registers_are_few) {
  target::Target few = machine(256, 16);
  few.features.clear();
  EXPECT_EQ(tile_of(few, 56, 64), "vectors=2 rows=6") << "no register for a product";
  few.features.insert("fma");
  for (const int64_t rows : {7, 13, 14, 28, 49, 56, 361}) EXPECT_EQ(tile_of(few, rows, 64), "vectors=4 rows=3") << rows;
  for (const int64_t rows : {2, 4, 6})
    EXPECT_EQ(tile_of(few, rows, 64), fmt::format("vectors={} rows={}", rows < 4 ? 4 : 2, rows)) << "one tile";
  EXPECT_EQ(tile_of(few, 56, 48), "vectors=2 rows=6") << "a cut of two vectors beside one of four";
  EXPECT_EQ(tile_of(few, 56, 728), "vectors=4 rows=3") << "three vectors beside 22 cuts";
  EXPECT_EQ(tile_of(few, 56, 64, 4096), "vectors=4 rows=3");
  EXPECT_EQ(tile_of(few, 56, 64, 4200), "vectors=2 rows=6") << "the second cache does not hold a cut";
  EXPECT_EQ(tile_of(machine(512, 32), 56, 128), "vectors=2 rows=14");
}

// The weights of the next cut are asked for while tiles have three rows of four vectors, or four of two; not for single
// rows, however wide.
TEST(prefetch, is_for_tiles_of_several_rows) {
  const auto asks = [](int64_t m, int64_t n) { return decided(machine(256, 16), m, n, 256, "prefetch=", "prefetch="); };
  EXPECT_EQ(asks(56, 64), "prefetch=2");
  EXPECT_EQ(asks(1, 768), "prefetch=0");
  EXPECT_EQ(asks(2, 768), "prefetch=0");
  EXPECT_NE(asks(4, 768), "prefetch=0");
}

// A step of such a tile goes over the weights one vector at a time; sums are the same, also where rows and vectors are
// left over, and of any number of rows.
TEST(tile_shape, computes_the_same_wide_and_low) {
  const target::Target few = machine(256, 16);
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
           {7, 64, 5}, {8, 71, 3}, {13, 96, 600}, {10, 83, 33}, {3, 32, 1}, {9, 72, 513}}) {
    const Function f = testing::matmul(int64(m), int64(n), int64(k));
    EXPECT_EQ(testing::scheduled(f, few, 1e-5, {}, {{"gemm.vectors", 4}, {"gemm.rows", 3}}), "gemm")
        << m << " " << n << " " << k;
  }
}

// Rows of any number: tiles of which two or more, and tiles of four, make the usual ones.
TEST(tile_shape, is_eight_or_four_rows_of_an_unknown_number) {
  for (const auto& [most, rows] :
       std::vector<std::pair<int64_t, int64_t>>{{14, 8}, {9, 8}, {8, 8}, {7, 4}, {6, 4}, {4, 4}, {3, 3}, {1, 1}})
    EXPECT_EQ(tiles_by_halves(most), rows) << most;
  for (const auto& [most, rows] :
       std::vector<std::pair<int64_t, int64_t>>{{14, 8}, {8, 8}, {7, 6}, {6, 6}, {5, 4}, {2, 2}})
    EXPECT_EQ(tiles_of_unknown(most), rows) << most;
  const Var n = ir::size_var("n"), h = ir::size_var("h"), w = ir::size_var("w");
  const auto tile = [&](int bits, int registers, int64_t channels) {
    testing::Builder b;
    const Buffer x = b.input("X", {n, h + 2, w + 2, int64(8)}),
                 k = b.input("W", {int64(3), int64(3), int64(8), int64(channels)});
    const Buffer y = b.output("Y", {n, h, w, int64(channels)});
    b.sum("conv", y, {{"kh", int64(3)}, {"kw", int64(3)}, {"c", int64(8)}}, [&](const std::vector<Expr>& i) {
      return load(x, {i[0], i[1] + i[4], i[2] + i[5], i[6]}) * load(k, {i[4], i[5], i[6], i[3]});
    });
    return decided(b.build({n, h, w}), machine(bits, registers), "vectors=", "rows=");
  };
  EXPECT_EQ(tile(512, 32, 64), "vectors=4 rows=4");
  EXPECT_EQ(tile(512, 32, 144), "vectors=4 rows=4") << "little beside two cuts";
  EXPECT_EQ(tile(512, 32, 72), "vectors=2 rows=8");
  EXPECT_EQ(tile(512, 32, 48), "vectors=3 rows=8");
  EXPECT_EQ(tile(256, 16, 64), "vectors=4 rows=3") << "few registers";
  EXPECT_EQ(tile(256, 16, 48), "vectors=2 rows=6") << "a cut of two vectors beside one of four";
}

// Threads that have too few cuts of the lanes share the tiles of these; nobody reads all weights for each tile of rows.
TEST(tile_shape, is_low_on_any_number_of_cores) {
  target::Target target = machine(512, 32);
  target.caches = {{.level = 1, .bytes = 48 << 10}, {.level = 2, .bytes = 2 << 20}};
  target.cores = 2;
  EXPECT_EQ(tile_of(target, 29 * 6, 384, 1536), "vectors=4 rows=6") << "they share six cuts of the lanes";
  target.cores = 16;
  EXPECT_EQ(tile_of(target, 29 * 6, 384, 1536), "vectors=4 rows=6") << "too few cuts";
}

// A matrix times a vector: as many cuts of the lanes as keep all cores busy, of four vectors at least.
TEST(tile_shape, leaves_cuts_to_each_core) {
  target::Target target = machine(512, 32);
  for (const auto& [cores, n, tile] :
       std::vector<std::tuple<int, int64_t, std::string>>{{1, 768, "vectors=8 rows=1"},
                                                          {2, 768, "vectors=8 rows=1"},
                                                          {2, 128, "vectors=4 rows=1"},
                                                          {16, 768, "vectors=4 rows=1"},
                                                          {16, 2304, "vectors=4 rows=1"},
                                                          {16, 2048, "vectors=8 rows=1"},
                                                          {16, 256, "vectors=4 rows=1"}}) {
    target.cores = cores;
    EXPECT_EQ(tile_of(target, 1, n, 4096), tile) << cores << " cores, " << n;
  }
  target.cores = 16;
  EXPECT_EQ(tile_of(target, 1, 768, 64), "vectors=8 rows=1") << "too little for threads";
}

// Threads share what is outermost: rows there are no good where they are one tile, or fewer than the threads.
TEST(rows_first, leaves_no_thread_idle) {
  target::Target target = machine(512, 32);
  const auto order = [&](int64_t m, int64_t n, int64_t k) {
    return decided(target, m, n, k, "rows_first=", "rows_first=");
  };
  for (const int cores : {2, 4, 16}) {
    target.cores = cores;
    for (const int64_t m : {1, 4, 8, 14, 15}) EXPECT_EQ(order(m, 3072, 768), "rows_first=0") << cores << ", " << m;
  }
  target.cores = 2;
  EXPECT_EQ(order(28 * 14, 64, 768), "rows_first=1") << "weights of two cuts, many rows";
  target.cores = 16;
  EXPECT_EQ(order(3 * 14, 512, 768), "rows_first=0");
}

// Windows over neighbouring frames are asked for ahead where the second cache holds less than two of these; both ways
// the same is computed.
TEST(rows_ahead, are_asked_for_where_windows_lie_far_apart) {
  const auto over_frames = [](int64_t pixels) {
    testing::Builder b;
    const Buffer x = b.input("X", {int64(4), int64(pixels), int64(32)}),
                 w = b.input("W", {int64(3), int64(32), int64(16)});
    const Buffer y = b.output("Y", {int64(2), int64(pixels), int64(16)});
    b.sum("conv", y, {{"t", int64(3)}, {"c", int64(32)}},
          [&](const std::vector<Expr>& i) { return load(x, {i[0] + i[3], i[1], i[4]}) * load(w, {i[3], i[4], i[2]}); });
    return b.build();
  };
  target::Target target = machine(512, 32);
  target.caches = {{.level = 1, .bytes = 32 << 10}, {.level = 2, .bytes = 256 << 10}};
  EXPECT_EQ(decided(over_frames(1100), target, "ahead=", "ahead="), "ahead=1");
  EXPECT_EQ(decided(over_frames(900), target, "ahead=", "ahead="), "ahead=0");
  for (const int64_t ahead : {0, 1})
    EXPECT_EQ(testing::scheduled(over_frames(29), target, 1e-5, {}, {{"conv.ahead", ahead}}), "conv");
}

}  // namespace
}  // namespace lathe::schedule
