#include "schedule/rules/rules.h"

#include <gtest/gtest.h>

#include "driver/pipeline.h"
#include "schedule/analysis/access.h"
#include "schedule/analysis/tree.h"
#include "schedule/rules/tile/tile_registers.h"
#include "schedule/testing/random_program.h"
#include "schedule/testing/rule_check.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

using testing::Builder;
using testing::compare;
using testing::ConvShape;
using testing::last_remarks;
using testing::machine;
using testing::machines;
using testing::scheduled;

TEST(gemm, tiles_every_shape) {
  for (const auto& [bits, registers] : machines)
    for (const int64_t m : {1, 2, 7, 13, 14, 17, 30})
      for (const int64_t n : {1, 5, 16, 32, 40, 70})
        for (const int64_t k : {1, 5}) {
          if ((m * 7 + n + k) % 3 && m * n > 200) continue;
          EXPECT_EQ(scheduled(testing::matmul(int64(m), int64(n), int64(k)), machine(bits, registers)), "gemm")
              << bits << " bits, " << m << "x" << n << "x" << k << "\n"
              << last_remarks;
        }
}

TEST(gemm, takes_bias_and_activation_into_the_tile) {
  for (const auto& [bits, registers] : machines)
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{14, 32, 3}, {28, 64, 2}, {17, 35, 4}, {5, 7, 9}})
      EXPECT_EQ(scheduled(testing::dense(int64(m), int64(n), int64(k)), machine(bits, registers)), "gemm")
          << last_remarks << bits << " bits, " << m << "x" << n << "x" << k;
}

// D = C * erf(C) of the product C.
Function gated(int64_t m, int64_t n, int64_t k) {
  Builder b;
  const Buffer x = b.input("A", {int64(m), int64(k)}), w = b.input("B", {int64(k), int64(n)});
  const Buffer d = b.output("D", {int64(m), int64(n)});
  const Buffer c = b.inner("C", {int64(m), int64(n)}), e = b.inner("E", {int64(m), int64(n)});
  b.sum("matmul", c, {{"k", int64(k)}},
        [&](const std::vector<Expr>& i) { return load(x, {i[0], i[2]}) * load(w, {i[2], i[1]}); });
  b.compute("erf", e, [&](const std::vector<Expr>& i) { return call(intrinsic::erf, load(c, i)); });
  b.compute("gate", d, [&](const std::vector<Expr>& i) { return load(c, i) * load(e, i); });
  return b.build();
}

TEST(gemm, keeps_a_costly_epilogue_in_the_tile) {
  for (const auto& [m, n] : std::vector<std::array<int64_t, 2>>{{14, 32}, {17, 35}}) {
    EXPECT_EQ(scheduled(gated(m, n, 3), machine(512, 32), 1e-5), "gemm") << last_remarks;
    AnalyticDecider decider;
    const Schedule done =
        schedule_function(Schedule::create(gated(m, n, 3)).value_or_throw(), machine(512, 32), decider, {});
    for (const Access& access : accesses(done.function().body))
      if (access.block && access.block->name.rfind("gate", 0) == 0 && !access.writes)
        EXPECT_EQ(access.buffer->scope, "register") << access.buffer->name << " of " << m << "x" << n;
  }
}

// The product and a relu, with zeros around it.
Function padded_product(int64_t m, int64_t n, int64_t k, int64_t before, int64_t after) {
  Builder b;
  const Buffer x = b.input("A", {int64(m), int64(k)}), w = b.input("B", {int64(k), int64(n)});
  const Buffer c = b.inner("C", {int64(m), int64(n)}), r = b.inner("R", {int64(m), int64(n)});
  const Buffer p = b.output("P", {int64(m + before + after), int64(n + after)});
  b.sum("matmul", c, {{"k", int64(k)}},
        [&](const std::vector<Expr>& i) { return load(x, {i[0], i[2]}) * load(w, {i[2], i[1]}); });
  b.compute("relu", r, [&](const std::vector<Expr>& i) { return max(load(c, i), testing::f32(0)); });
  b.compute("pad", p, [&](const std::vector<Expr>& i) {
    const Expr row = i[0] - before;
    const Expr inside = logical_and(logical_and(row >= 0, row < m), i[1] < n);
    return if_then_else(inside, load(r, {row, i[1]}), testing::f32(0));
  });
  return b.build();
}

TEST(gemm, writes_its_tiles_into_a_padded_image) {
  for (const auto& [m, n, before, after] :
       std::vector<std::array<int64_t, 4>>{{28, 32, 1, 1}, {17, 35, 0, 2}, {5, 16, 3, 0}}) {
    const Function f = padded_product(m, n, 3, before, after);
    EXPECT_EQ(scheduled(f, machine(512, 32)), "gemm") << last_remarks << m << "x" << n;
    AnalyticDecider decider;
    const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), machine(512, 32), decider, {});
    for (const Access& access : accesses(done.function().body))
      if (access.block && access.block->name == "pad" && !access.writes)
        EXPECT_EQ(access.buffer->scope, "register") << access.buffer->name << " of " << m << "x" << n;
  }
}

TEST(gemm, sums_long_rows_in_parts) {
  for (const auto& [bits, registers] : machines)
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{2, 16, 1024}, {2, 21, 1200}, {1, 8, 1031}}) {
      EXPECT_EQ(scheduled(testing::matmul(int64(m), int64(n), int64(k)), machine(bits, registers)), "gemm")
          << last_remarks;
      EXPECT_EQ(scheduled(testing::dense(int64(m), int64(n), int64(k)), machine(bits, registers)), "gemm")
          << last_remarks;
    }
}

TEST(gemm, sums_over_several_loops_in_parts_of_what_is_allowed) {
  struct Case {
    std::array<int64_t, 3> extents;
    int64_t parts;  // 0: one sum
  };
  for (const auto& [extents, parts] : std::vector<Case>{{{3, 3, 56}, 0},
                                                        {{3, 3, 512}, 18},
                                                        {{3, 3, 96}, 9},
                                                        {{3, 3, 509}, 9},
                                                        {{1, 1, 1024}, 4},
                                                        {{1, 1, 1031}, 0},
                                                        {{96, 3, 3}, 4},
                                                        {{0, 3, 600}, 0}}) {
    Builder b;
    const Buffer x = b.input("X", {int64(2), int64(extents[0]), int64(extents[1]), int64(extents[2])});
    const Buffer y = b.output("Y", {int64(2)});
    b.sum("sum", y, {{"i", int64(extents[0])}, {"j", int64(extents[1])}, {"k", int64(extents[2])}},
          [&](const std::vector<Expr>& i) { return load(x, {i[0], i[1], i[2], i[3]}); });
    Schedule schedule = Schedule::create(b.build()).value_or_throw();
    const Function before = schedule.mod().find_as<PrimFunc>("main");
    const BlockRV block = schedule.get_block("sum").value_or_throw();
    const std::vector<LoopRV> loops = schedule.get_loops(block).value_or_throw();
    const auto done = sum_in_parts(schedule, block, {loops.begin() + 1, loops.end()}, 256).value_or_throw();
    ASSERT_EQ(done.has_value(), parts > 0) << extents[0] << " " << extents[2];
    if (!done) continue;
    const LoopRV adding = schedule.get_loops(block).value_or_throw().back();
    EXPECT_EQ(as_int(schedule.get(adding).value_or_throw()->extent), parts) << extents[0] << " " << extents[2];
    EXPECT_EQ(compare(before, schedule.mod().find_as<PrimFunc>("main"), 5, 1e-4, {}), "");
  }
}

TEST(gemm, takes_rows_that_are_not_known) {
  const Var m = ir::size_var("m");
  for (const int64_t rows : {0, 1, 13, 14, 30})
    EXPECT_EQ(scheduled(testing::matmul(m, int64(48), int64(5)), machine(512, 32), 0, {{"m", rows}}), "gemm")
        << rows << last_remarks;
}

TEST(gemm, takes_the_rows_outside_the_lanes) {
  const std::map<std::string, int64_t> rows_first{{"gemm.rows_first", 1}, {"gemm.prefetch", 2}};
  for (const auto& [bits, registers] : machines)
    for (const auto& [m, n, k] :
         std::vector<std::array<int64_t, 3>>{{28, 64, 8}, {17, 35, 4}, {14, 70, 16}, {30, 16, 5}, {13, 20, 300}})
      EXPECT_EQ(scheduled(testing::dense(int64(m), int64(n), int64(k)), machine(bits, registers), 0, {}, rows_first),
                "gemm")
          << last_remarks << bits << " bits, " << m << "x" << n << "x" << k;
  const Var m = ir::size_var("m");
  for (const int64_t rows : {0, 1, 14, 30})
    EXPECT_EQ(scheduled(testing::matmul(m, int64(48), int64(5)), machine(512, 32), 0, {{"m", rows}}, rows_first),
              "gemm")
        << rows << last_remarks;
}

// Panels are two vectors wide; the weights of the next cut are one piece of memory where a tile is as wide as two.
TEST(gemm, asks_for_the_weights_of_the_next_cut) {
  const Function f = testing::from_text(R"(
@T.prim_func
def main(A: T.Buffer((128, 768), "float32"), B: T.Buffer((32, 768, 32), "float32"), C: T.Buffer((128, 1024), "float32")):
    for i, j, k in T.grid(128, 1024, 768):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj // 32, vk, vj % 32]
)");
  for (const int64_t vectors : {2, 4}) {
    AnalyticDecider model;
    TableDecider decider({{"gemm.vectors", vectors}}, model);
    const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), machine(512, 32), decider, {});
    int64_t asked = 0;
    ir::pre_order(done.function().body, [&](const ir::NodeRef& n) {
      const auto* block = n.as<Block>();
      if (!block || !block->name.ends_with("_prefetch")) return true;
      int64_t lines = 0;
      ir::pre_order(block->body, [&](const ir::NodeRef& inner) {
        const auto* hint = inner.as<Call>();
        lines += hint && hint->args.size() == 2 && is_int(hint->args[1], 2);  // into the second cache
        return true;
      });
      EXPECT_LE(lines, 4) << "as many at once as there are places for them would keep others waiting";
      asked += lines > 0;
      return true;
    });
    EXPECT_GE(asked, 1) << vectors << " vectors";
  }
}

// Sums over an extent that only the run knows, as tensor expressions give them: their start is a nest of its own, as
// there may be nothing to add.
Function sum_of_unknown_length(bool transposed, bool with_epilogue) {
  std::string text = R"(
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle, m: T.int64(is_size_var=True), k: T.int64(is_size_var=True)):
    A = T.match_buffer(a, (2, m, k), "float32")
    B = T.match_buffer(b, (2, k, 40), "float32")
    C = T.match_buffer(c, (2, m, 40), "float32")
    D = T.alloc_buffer((2, m, 40), "float32")
    for h, i, j in T.grid(2, m, 40):
        with T.block("start"):
            vh, vi, vj = T.axis.remap("SSS", [h, i, j])
            D[vh, vi, vj] = T.float32(0)
    for h, i, j, p in T.grid(2, m, 40, k):
        with T.block("product"):
            vh, vi, vj, vp = T.axis.remap("SSSR", [h, i, j, p])
            D[vh, vi, vj] = D[vh, vi, vj] + A[vh, vi, vp] * B[vh, vp, vj]
    for h, i, j in T.grid(2, m, 40):
        with T.block("after"):
            vh, vi, vj = T.axis.remap("SSS", [h, i, j])
            C[vh, vi, vj] = T.max(D[vh, vi, vj], T.float32(0))
)";
  const auto swap = [&](const std::string& from, const std::string& to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  };
  if (!with_epilogue) {
    text.resize(text.find("    for h, i, j in T.grid(2, m, 40):\n        with T.block(\"after\")"));
    swap("    D = T.alloc_buffer((2, m, 40), \"float32\")\n", "");
    swap("D[", "C[");
  }
  if (transposed) {
    swap("c, (2, m, 40)", "c, (2, 40, m)");
    swap("C[vh, vi, vj]", "C[vh, vj, vi]");
  }
  return testing::from_text(text);
}

TEST(gemm, sums_over_what_only_the_run_knows) {
  for (const auto& [bits, registers] : machines)
    for (const bool transposed : {false, true})
      for (const bool with_epilogue : {false, true})
        for (const auto& [m, k] : std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {1, 0}, {21, 5}})
          EXPECT_EQ(scheduled(sum_of_unknown_length(transposed, with_epilogue), machine(bits, registers), 0,
                              {{"m", m}, {"k", k}}),
                    "gemm")
              << bits << " bits, " << m << " rows of " << k << last_remarks;
}

TEST(gemm, takes_lanes_that_are_not_known) {
  const Var n = ir::size_var("n");
  for (const int64_t lanes : {0, 1, 3, 17, 53, 64})
    EXPECT_EQ(scheduled(testing::matmul(int64(9), n, int64(5)), machine(512, 32), 0, {{"n", lanes}}), "gemm")
        << lanes << last_remarks;
}

// What the analytic model decides about a product.
std::string decided(const target::Target& target, int64_t m, int64_t n, int64_t k) {
  AnalyticDecider decider;
  const Schedule start = Schedule::create(testing::matmul(int64(m), int64(n), int64(k))).value_or_throw();
  std::string text;
  ir::PassContext context;
  context.on_remark = [&](const ir::Remark& remark) {
    if (remark.taken) text = remark.text;
  };
  schedule_function(start, target, decider, context);
  return text;
}

TEST(gemm, keeps_the_rows_of_a_tile_in_the_nearest_cache) {
  target::Target target = machine(512, 32);
  int64_t height = 128;
  const auto rows = [&](int64_t k) {
    const std::string text = decided(target, height, 64, k);
    return text.substr(text.find("rows="), 7);
  };
  EXPECT_EQ(rows(3072), "rows=6 ") << "all rows meet in one set of eight ways";
  EXPECT_NE(decided(target, 128, 64, 3072).find("vectors=4"), std::string::npos) << "a low tile is wide";
  height = 16;
  EXPECT_EQ(rows(3072), "rows=8 ") << "two tiles of eight rows fill the ways";
  height = 128;
  target.caches = {{.level = 1, .bytes = 48 << 10}, {.level = 2, .bytes = 4 << 20}};
  EXPECT_EQ(rows(3072), "rows=11") << "12 KB apart, all rows meet in one set of twelve ways";
  EXPECT_EQ(rows(768), "rows=13") << "3 KB apart, they meet in four";
}

// [rows, 1, k] times [k, n], as layers have it whose sequences come first and whose batch is one.
TEST(gemm, makes_tiles_of_many_rows_around_single_ones) {
  Builder b;
  const Buffer x = b.input("X", {int64(39), int64(1), int64(40)}), w = b.input("W", {int64(40), int64(64)});
  const Buffer y = b.output("Y", {int64(39), int64(1), int64(64)});
  b.sum("product", y, {{"k", int64(40)}},
        [&](const std::vector<Expr>& i) { return load(x, {i[0], i[1], i[3]}) * load(w, {i[3], i[2]}); });
  EXPECT_EQ(scheduled(b.build(), machine(512, 32)), "gemm") << last_remarks;
  std::string text;
  ir::PassContext context;
  context.on_remark = [&](const ir::Remark& remark) {
    if (remark.taken) text = remark.text;
  };
  AnalyticDecider decider;
  schedule_function(Schedule::create(b.build()).value_or_throw(), machine(512, 32), decider, context);
  EXPECT_NE(text.find("rows=13"), std::string::npos) << text;
}

TEST(gemm, leaves_a_single_column_to_sums_along_rows) {
  for (const auto& [bits, registers] : machines)
    for (const int64_t rows : {1, 5, 33}) {
      const Function f = testing::matmul(int64(rows), int64(1), int64(200));
      EXPECT_EQ(scheduled(f, machine(bits, registers), 1e-5), "reduction") << rows << last_remarks;
    }
}

TEST(gemm, puts_outside_what_is_read_again_from_nearer) {
  const auto rows_first = [](int64_t m, int64_t n, int64_t k) {
    return decided(machine(512, 32), m, n, k).find("rows_first=1") != std::string::npos;
  };
  EXPECT_TRUE(rows_first(3136, 160, 64)) << "40 KB of weights, 2 MB written";
  EXPECT_TRUE(rows_first(12544, 96, 16)) << "6 KB of weights, 5 MB written";
  EXPECT_FALSE(rows_first(49, 2048, 512)) << "4 MB of weights, 100 KB of rows";
  EXPECT_FALSE(rows_first(128, 3072, 768)) << "9 MB of weights, 400 KB of rows";
  EXPECT_FALSE(rows_first(3136, 32, 64)) << "one cut of the lanes";
}

TEST(gemm, gives_threads_their_rows) {
  for (const auto& [bits, registers] : machines)
    for (const auto& [m, n, k] :
         std::vector<std::array<int64_t, 3>>{{24, 32, 4}, {28, 35, 3}, {12, 16, 5}, {8, 24, 300}})
      for (const int64_t share : {2, 6}) {
        target::Target target = machine(bits, registers);
        target.cores = 2;
        const std::map<std::string, int64_t> decisions{{"gemm.rows_first", 0}, {"gemm.rows", 2}, {"gemm.share", share}};
        EXPECT_EQ(scheduled(testing::dense(int64(m), int64(n), int64(k)), target, 1e-5, {}, decisions), "gemm")
            << last_remarks << bits << " bits, " << m << "x" << n << "x" << k << " in " << share;
      }
}

TEST(gemm, lets_threads_share_the_rows_or_the_lanes) {
  target::Target target = machine(512, 32);
  target.cores = 2;
  target.caches = {{.level = 1, .bytes = 48 << 10}, {.level = 2, .bytes = 2 << 20}};
  const auto answer = [&](const std::string& question, int64_t m, int64_t n, int64_t k) {
    const std::string text = decided(target, m, n, k);
    const size_t at = text.find(question);
    return at == std::string::npos ? text : text.substr(at, question.size() + 1);
  };
  const auto share = [&](int64_t m, int64_t n, int64_t k) { return answer("share=", m, n, k); };
  EXPECT_EQ(answer("rows_first=", 3025, 16, 128), "rows_first=1")
      << "one cut of the lanes, rows that two do not divide";
  EXPECT_EQ(answer("grid=", 121, 160, 750), "grid=1") << "five cuts of the lanes";
  EXPECT_EQ(answer("grid=", 121, 192, 750), "grid=0") << "six";
  EXPECT_EQ(share(784, 32, 192), "share=2") << "one cut of the lanes";
  EXPECT_EQ(share(196, 96, 576), "share=2") << "three cuts of the lanes, which two threads cannot share evenly";
  EXPECT_EQ(share(196, 384, 64), "share=2") << "98 KB of weights, 350 KB of rows and output";
  EXPECT_EQ(share(196, 1024, 1024), "share=1") << "4 MB of weights, 1.6 MB of rows and output";
  EXPECT_EQ(share(49, 160, 960), "share=1") << "seven times seven rows";
  EXPECT_EQ(share(28, 16, 16), "share=1") << "too little work";
  target.cores = 1;
  EXPECT_EQ(share(784, 32, 192), "share=1");
}

TEST(conv, tiles_every_shape) {
  int64_t number = 0;
  for (const auto& [bits, registers] : machines)
    for (const int64_t lanes : {0, 16, 32})
      for (const int64_t width : {5, 9, 16})
        for (const int64_t filters : {7, 16, 33}) {
          ConvShape shape{1, 2, 5, width, filters, 3, 1 + number % 2, number % 2, lanes, number % 3 != 0, false};
          ++number;
          if (lanes == 0) shape.lanes = 0;
          const std::string taken = scheduled(testing::conv2d(shape), machine(bits, registers));
          EXPECT_TRUE(taken == "conv" ||
                      (lanes == 0 && (taken == "pool" || taken == "reduction" || taken == "fallback")))
              << bits << " bits, lanes " << lanes << ", width " << width << ", filters " << filters << ": " << taken
              << last_remarks;
        }
}

TEST(conv, shares_weights_among_short_rows) {
  for (const auto& [bits, registers] : machines)
    for (const int64_t height : {1, 4, 5})
      for (const int64_t rows_first : {0, 1}) {
        const ConvShape shape{2, 2, height, 3, 33, 3, 1, 1, 16, height % 2 == 0, false};
        EXPECT_EQ(scheduled(testing::conv2d(shape), machine(bits, registers), 1e-5, {},
                            {{"conv.tall", 2}, {"conv.rows_first", rows_first}}),
                  "conv")
            << bits << " bits, " << height << " rows" << last_remarks;
      }
}

// Tiles that hold whole rows: the steps of the window have bodies of their own, and rows at the ends stand alone.
TEST(conv, leaves_products_with_zeros_out) {
  for (const auto& [bits, registers] : machines)
    for (const int64_t height : {1, 2, 3, 7, 8})
      for (const int64_t channels : {2, 9, 60}) {
        const ConvShape shape{1, channels, height,      6,    32, height % 2 ? 3 : 5, 1 + height % 3 / 2,
                              2, 16,       height != 3, false};
        if (channels == 60 && (height != 3 || bits != 512)) continue;  // a long sum
        for (const int64_t share : {1, 2})
          EXPECT_EQ(scheduled(testing::conv2d(shape), machine(bits, registers), 1e-4, {},
                              {{"conv.borders", 1}, {"conv.tall", 2}, {"conv.share", share}}),
                    "conv")
              << bits << " bits, " << height << " rows, " << channels << " channels" << last_remarks;
      }
}

// Of an image of one element all taps but the middle one meet zeros: infinite weights there show whether one is added.
TEST(conv, adds_no_zero_where_a_tile_holds_a_row) {
  AnalyticDecider decider;
  const Function f = testing::conv2d({1, 9, 1, 1, 32, 3, 1, 1, 16, false, false});
  const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), machine(512, 32), decider, {});
  const auto is_finite = [&](const std::set<std::string>& disabled) {
    const Function kernel = driver::lower_to_kernel(done.mod().find_as<PrimFunc>("main"), disabled).value_or_throw();
    std::vector<tir::TensorBuffer> arguments = tir::testing::random_arguments(f, 7);
    for (int64_t i = 0; i < arguments[1].elements(); ++i)  // [panels, 3, 3, channels, lanes]
      if (i / (9 * 16) % 9 != 4) arguments[1].set_float(i, std::numeric_limits<double>::infinity());
    EXPECT_TRUE(tir::interpret(kernel, arguments).ok());
    return std::isfinite(arguments[2].float_at(0)) && std::isfinite(arguments[2].float_at(31));
  };
  EXPECT_TRUE(is_finite({}));
  EXPECT_FALSE(is_finite({"skip_zeros"}));
}

TEST(conv, gives_threads_their_lines) {
  for (const auto& [bits, registers] : machines)
    for (const int64_t height : {4, 6, 8})
      for (const int64_t tall : {1, 2}) {
        target::Target target = machine(bits, registers);
        target.cores = 2;
        const ConvShape shape{1, 2, height, 3, 33, 3, 1, 1, 16, height % 4 == 0, false};
        const std::map<std::string, int64_t> decisions{{"conv.tall", tall}, {"conv.rows_first", 0}, {"conv.share", 2}};
        EXPECT_EQ(scheduled(testing::conv2d(shape), target, 1e-5, {}, decisions), "conv")
            << bits << " bits, " << height << " lines" << last_remarks;
      }
}

TEST(rules, keep_the_meaning_of_random_programs) {
  std::map<std::string, int> taken;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    const Function f = testing::random_program(random);
    const std::string by = scheduled(f, machine(128 << (seed % 3), 16));
    EXPECT_EQ(by.find(':'), std::string::npos) << "seed " << seed << "\n" << by;
    ++taken[by];
  }
  for (const auto& [rule, count] : taken) fmt::print("{:12} {}\n", rule.substr(0, 12), count);
}

TEST(rules, keep_the_meaning_of_every_function_of_a_module) {
  // Equal signatures, so that a program under another's name would run.
  ir::IRModule before;
  for (const int64_t factor : {2, 3, 5}) {
    Builder b;
    const Buffer x = b.input("X", {int64(4), int64(9)}), y = b.output("Y", {int64(4), int64(9)});
    b.compute("scale", y,
              [&](const std::vector<Expr>& i) { return load(x, i) * testing::f32(static_cast<double>(factor)); });
    before.set(fmt::format("times_{}", factor), b.build());
  }
  AnalyticDecider decider;
  const ir::IRModule after = schedule_functions(before, machine(256, 16), decider, {}).value_or_throw();
  ASSERT_EQ(after.size(), before.size());
  for (const auto& [name, function] : before)
    EXPECT_EQ(compare(ir::cast<PrimFunc>(function), after.find_as<PrimFunc>(name), 3, 0, {}), "") << name;
}

TEST(rules, say_what_they_decided) {
  AnalyticDecider decider;
  std::vector<std::string> decisions;
  ir::PassContext context;
  context.on_remark = [&](const ir::Remark& remark) {
    if (remark.taken) decisions.push_back(remark.pass + ": " + remark.text);
  };
  ir::IRModule module;
  module.set("product", testing::matmul(int64(28), int64(64), int64(64)));
  ASSERT_TRUE(schedule_functions(module, machine(512, 32), decider, context).ok());
  EXPECT_EQ(
      decisions,
      std::vector<std::string>{
          "gemm: lanes=16 vectors=2 rows=14 rows_first=0 share=1 grid=0 steps=4 chains=8 prefetch=0 ahead=0 panels=0"});
}

TEST(rules, say_why_they_declined) {
  AnalyticDecider decider;
  std::vector<std::string> remarks;
  ir::PassContext context;
  context.on_remark = [&](ir::Remark remark) {
    remarks.push_back(remark.subject + ": " + remark.pass + ": " + remark.text);
  };
  ir::IRModule module;
  module.set("softmax", testing::softmax(int64(4), int64(32)));
  const auto result = schedule_functions(module, machine(256, 16), decider, context);
  ASSERT_TRUE(result.ok());
  ASSERT_GE(remarks.size(), 7u);
  EXPECT_EQ(remarks[0], "softmax: transform: block 'max' is a reduction");
  EXPECT_EQ(remarks[1], "softmax: stencil: block 'max' is a reduction");
  EXPECT_EQ(remarks[2], "softmax: elementwise: block 'max' is a reduction");
  EXPECT_EQ(remarks[3], "softmax: recurrence: no block has a scan axis");
  EXPECT_EQ(remarks[4], "softmax: attention: it does not hold two products");
  EXPECT_EQ(remarks[5], "softmax: dot: blocks 'max' and 'sum' are both reductions");
  EXPECT_EQ(remarks[6], "softmax: gemm: blocks 'max' and 'sum' are both reductions");
}

TEST(rules, ask_the_decider) {
  AnalyticDecider model;
  TableDecider decider({{"gemm.rows", 3}}, model);
  const Schedule start = Schedule::create(testing::matmul(int64(12), int64(32), int64(4))).value_or_throw();
  const Schedule done = schedule_function(start, machine(512, 32), decider, {});
  EXPECT_NE(done.trace().as_python().find("decision=2, name=\"gemm.rows\")"), std::string::npos);
}

}  // namespace
}  // namespace lathe::schedule
