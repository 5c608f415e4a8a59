// What the register tile must become: accumulators in registers through the loop, one FMA a tile vector, broadcasts as
// loads, nothing spilled. Read off the assembly for x86-64-v4, so it needs no such machine.
#include <gtest/gtest.h>

#include "codegen/llvm/run_kernel_test.h"

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

constexpr int64_t rows = 14, columns = 32, lanes = 16;

// C[14, 32] = A[14, k] * B[k, 32] as the schedule leaves it: a register buffer of 14 x 2 vectors, unrolled.
Kernel matmul_tile(int64_t k) {
  const DType f = DType::float32();
  const Buffer a = buffer("A", {int64(rows * k)}, f), b = buffer("B", {int64(k * columns)}, f),
               c = buffer("C", {int64(rows * columns)}, f);
  const Buffer tile = buffer("tile", {int64(rows * columns)}, f, "register");
  const Var p = var("p");
  const auto vector = [](Expr base) { return Expr(make<Ramp>(base, int64(1), lanes)); };
  std::vector<Stmt> init, step, finish;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t v = 0; v < columns / lanes; ++v) {
      const Expr at = vector(int64(r * columns + v * lanes));
      init.push_back(make<BufferStore>(tile, constant(f.with_lanes(lanes), 0.0), std::vector<Expr>{at}));
      const Expr x = make<Broadcast>(load(a, {Expr(p) + r * k}), lanes);
      const Expr y = load(b, {vector(Expr(p) * columns + v * lanes)});
      step.push_back(make<BufferStore>(tile, load(tile, {at}) + x * y, std::vector<Expr>{at}));
      finish.push_back(make<BufferStore>(c, load(tile, {at}), std::vector<Expr>{at}));
    }
  const Stmt loop = make<For>(p, int64(0), int64(k), ForKind::serial, seq(step));
  const Stmt body = make<Allocate>(tile->data, f, std::vector<Expr>{int64(rows * columns)}, std::string("register"),
                                   seq({seq(init), loop, seq(finish)}));
  return {"matmul_tile", prim_func({a, b, c}, body)};
}

int occurrences(const std::string& text, const std::string& what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

std::vector<std::string> lines_with(const std::string& text, const std::string& a, const std::string& b) {
  std::vector<std::string> found;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (line.find(a) != std::string::npos && line.find(b) != std::string::npos) found.push_back(line);
  return found;
}

TEST(microkernel, keeps_its_tile_in_registers) {
  const target::Target v4 = target::parse_target("x86-64-v4").value_or_throw();
  const std::string assembly = emit_llvm({matmul_tile(256)}, v4, {.kind = EmitKind::assembly}).value_or_throw();
  EXPECT_TRUE(lines_with(assembly, "zmm", "(%rsp").empty()) << lines_with(assembly, "zmm", "(%rsp")[0];
  EXPECT_TRUE(lines_with(assembly, "zmm", "(%rbp").empty());
  EXPECT_EQ(occurrences(assembly, "vfmadd"), rows * columns / lanes) << assembly;
  EXPECT_EQ(static_cast<int>(lines_with(assembly, "vmulps", "zmm").size()), 0);
  // A's elements come as broadcasts from memory: 14 of them, or embedded in an FMA.
  EXPECT_GE(static_cast<int>(lines_with(assembly, "vbroadcastss", "(%").size()) + occurrences(assembly, "{1to16}"),
            rows);
  EXPECT_TRUE(lines_with(assembly, "vbroadcastss", "%xmm").empty()) << "a broadcast goes through a scalar register";
  EXPECT_EQ(occurrences(assembly, "ymm"), 0) << "512-bit vectors were split";
  const std::string text = emit_llvm({matmul_tile(256)}, v4, {.kind = EmitKind::llvm_ir}).value_or_throw();
  EXPECT_EQ(occurrences(text, "alloca"), 0);
  EXPECT_EQ(occurrences(text, "phi <16 x float>"), rows * columns / lanes);
}

TEST(microkernel, computes_the_product) {
  for (const int64_t k : {1, 7, 64}) {
    const auto loaded = test::load({matmul_tile(k)});
    std::vector<float> a(static_cast<size_t>(rows * k)), b(static_cast<size_t>(k * columns)),
        c(static_cast<size_t>(rows * columns), -1);
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 13) - 6;
    for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 11) - 5;
    EXPECT_EQ(test::call(loaded, 0, {a.data(), b.data(), c.data()}), 0);
    for (size_t r = 0; r < rows; ++r)
      for (size_t n = 0; n < columns; ++n) {
        float sum = 0;
        for (size_t p = 0; p < static_cast<size_t>(k); ++p)
          sum += a[r * static_cast<size_t>(k) + p] * b[p * columns + n];
        ASSERT_EQ(c[r * columns + n], sum) << r << " " << n;
      }
  }
}

// What a person asks for by name; it prints and asserts no time.
TEST(microkernel, DISABLED_speed) {
  const int64_t k = 768;
  const auto loaded = test::load({matmul_tile(k)});
  std::vector<float> a(static_cast<size_t>(rows * k), 1.0f), b(static_cast<size_t>(k * columns), 0.5f),
      c(static_cast<size_t>(rows * columns));
  double best = 0;
  for (int round = 0; round < 50; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int run = 0; run < 100; ++run) test::call(loaded, 0, {a.data(), b.data(), c.data()});
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, 100.0 * 2 * rows * columns * k / seconds / 1e9);
  }
  std::printf("14x32 tile, k = %lld: %.1f GFLOP/s\n", static_cast<long long>(k), best);
}

}  // namespace
}  // namespace lathe::codegen
