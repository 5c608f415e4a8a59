#include "schedule/rules/attention.h"

#include <gtest/gtest.h>

#include "driver/pipeline.h"
#include "schedule/analysis/access.h"
#include "schedule/testing/programs.h"
#include "schedule/testing/rule_check.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

using testing::Builder;
using testing::f32;
using testing::largest_allocation;
using testing::last_remarks;
using testing::machine;
using testing::machines;
using testing::scheduled;
using testing::scheduled_once;
using Indices = std::vector<Expr>;

struct Shape {
  int64_t heads = 2, rows = 16, columns = 32, depth = 4, width = 16;
  enum Keys { by_row, by_column } keys = by_row;  // [columns, depth] or [depth, columns]
  enum Mask { none, added, chosen } mask = none;
  bool heads_inside = false;  // [rows, heads, depth], as projections give them, in all tensors
  bool divides_last = false;  // what is mixed by the sum of the weights, not these

  std::string text() const {
    return fmt::format(
        "{} heads, {} rows, {} columns, {} deep, {} wide, keys {}, mask {}, heads inside {}, divides last {}", heads,
        rows, columns, depth, width, static_cast<int>(keys), static_cast<int>(mask), heads_inside, divides_last);
  }
};

Function attention_of(const Shape& s) {
  Builder b;
  const Expr heads = int64(s.heads), rows = int64(s.rows), columns = int64(s.columns), depth = int64(s.depth),
             width = int64(s.width);
  const auto shape = [&](const Expr& length, const Expr& last) {
    return s.heads_inside ? Indices{length, heads, last} : Indices{heads, length, last};
  };
  const auto at = [&](const Buffer& x, const Expr& head, const Expr& row, const Expr& last) {
    return load(x, s.heads_inside ? Indices{row, head, last} : Indices{head, row, last});
  };
  const Buffer q = b.input("Q", shape(rows, depth));
  const Buffer k = b.input("K", s.keys == Shape::by_row ? shape(columns, depth) : Indices{heads, depth, columns});
  const Buffer v = b.input("V", shape(columns, width));
  const Buffer bias = s.mask == Shape::none ? Buffer() : b.input("M", {rows, columns});
  const Buffer y = b.output("Y", shape(rows, width));
  const Indices scores_shape{heads, rows, columns};
  const Buffer score = b.inner("S", scores_shape), masked = b.inner("B", scores_shape);
  const Buffer most = b.inner("X", {heads, rows}), total = b.inner("T", {heads, rows});
  const Buffer e = b.inner("E", scores_shape), p = b.inner("P", scores_shape);
  b.sum("scores", score, {{"d", depth}}, [&](const Indices& i) {
    const Expr key = s.keys == Shape::by_row ? at(k, i[0], i[2], i[3]) : load(k, {i[0], i[3], i[2]});
    return at(q, i[0], i[1], i[3]) * key;
  });
  b.compute("mask", masked, [&](const Indices& i) {
    const Expr scaled = load(score, i) * f32(0.01);
    if (s.mask == Shape::none) return scaled;
    const Expr other = load(bias, {i[1], i[2]});
    return s.mask == Shape::added ? scaled + other * f32(0.1) : ir::select(other > f32(0), scaled, f32(-1e9));
  });
  b.max("max", most, {{"k", columns}}, [&](const Indices& i) { return load(masked, i); });
  b.compute("exp", e,
            [&](const Indices& i) { return call(intrinsic::exp, load(masked, i) - load(most, {i[0], i[1]})); });
  b.sum("sum", total, {{"k", columns}}, [&](const Indices& i) { return load(e, i); });
  if (!s.divides_last)
    b.compute("norm", p, [&](const Indices& i) { return div(load(e, i), load(total, {i[0], i[1]})); });
  const Buffer mixed = s.heads_inside || s.divides_last ? b.inner("O", {heads, rows, width}) : y;
  b.sum("values", mixed, {{"k", columns}},
        [&](const Indices& i) { return load(s.divides_last ? e : p, {i[0], i[1], i[3]}) * at(v, i[0], i[3], i[2]); });
  if (s.divides_last) {
    const Buffer share = b.inner("R", {heads, rows, int64(1)});
    b.compute("share", share, [&](const Indices& i) { return div(f32(1), load(total, {i[0], i[1]})); });
    b.compute("divide", y, [&](const Indices& i) {
      const Expr head = i[s.heads_inside ? 1 : 0], row = i[s.heads_inside ? 0 : 1];
      return load(share, {head, row, int64(0)}) * load(mixed, {head, row, i[2]});
    });
    return b.build();
  }
  if (s.heads_inside) b.compute("permute", y, [&](const Indices& i) { return load(mixed, {i[1], i[0], i[2]}); });
  return b.build();
}

TEST(attention, takes_every_shape) {
  for (const auto& [bits, registers] : machines)
    for (const auto& [rows, columns, depth, width] : std::vector<std::array<int64_t, 4>>{{1, 1, 1, 1},
                                                                                         {5, 1, 2, 9},
                                                                                         {9, 20, 2, 1},
                                                                                         {1, 40, 8, 16},
                                                                                         {2, 3, 5, 7},
                                                                                         {13, 33, 3, 17},
                                                                                         {16, 64, 2, 32},
                                                                                         {14, 31, 4, 5},
                                                                                         {17, 70, 1, 40},
                                                                                         {29, 16, 3, 8}})
      for (const bool divides_last : {false, true}) {
        const Shape shape{
            .rows = rows, .columns = columns, .depth = depth, .width = width, .divides_last = divides_last};
        EXPECT_EQ(scheduled(attention_of(shape), machine(bits, registers), 1e-5), "attention")
            << bits << " bits, " << shape.text() << "\n"
            << last_remarks;
      }
}

TEST(attention, takes_keys_masks_and_heads_as_networks_write_them) {
  for (const auto keys : {Shape::by_row, Shape::by_column})
    for (const auto mask : {Shape::none, Shape::added, Shape::chosen})
      for (const auto [heads_inside, divides_last] :
           {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
        const Shape shape{.heads = 3,
                          .rows = 15,
                          .columns = 37,
                          .depth = 5,
                          .width = 19,
                          .keys = keys,
                          .mask = mask,
                          .heads_inside = heads_inside,
                          .divides_last = divides_last};
        EXPECT_EQ(scheduled(attention_of(shape), machine(512, 32), 1e-5), "attention") << shape.text() << last_remarks;
      }
}

TEST(attention, multiplies_a_few_rows_with_keys_as_they_lie) {
  for (const auto keys : {Shape::by_row, Shape::by_column})
    for (const auto& [rows, columns, depth] :
         std::vector<std::array<int64_t, 3>>{{1, 40, 64}, {2, 17, 33}, {3, 5, 80}, {1, 1, 16}, {3, 35, 1}}) {
      const Shape shape{.rows = rows, .columns = columns, .depth = depth, .width = 24, .keys = keys};
      EXPECT_EQ(scheduled(attention_of(shape), machine(512, 32), 1e-5), "attention") << shape.text() << last_remarks;
      EXPECT_LE(largest_allocation(attention_of(shape), machine(512, 32)), 4 * 80) << "keys are not copied";
    }
}

TEST(attention, sums_many_keys_in_parts) {
  const Shape shape{.heads = 1, .rows = 3, .columns = 600, .depth = 2, .width = 16};
  EXPECT_EQ(scheduled(attention_of(shape), machine(512, 32), 1e-4), "attention") << last_remarks;
}

TEST(attention, shares_blocks_of_rows_where_batches_are_few) {
  target::Target target = machine(512, 32);
  target.cores = 4;
  const Shape shape{.heads = 3, .rows = 28, .columns = 64, .depth = 32, .width = 64};
  EXPECT_EQ(scheduled(attention_of(shape), target, 1e-5, {}, {{"attention.block", 7}}), "attention") << last_remarks;
}

TEST(attention, shares_heads_where_what_follows_cannot_take_its_tiles) {
  // A prime number of rows: what divides the mixed ones, and turns the heads inside, goes by itself in a head's loop.
  const Function f = testing::from_text(R"(# lathe script 1
from lathe.script import tir as T

@T.prim_func
def main(K: T.Buffer((1, 4, 401, 32), "float32"), Q: T.Buffer((1, 4, 401, 32), "float32"), V: T.Buffer((1, 4, 401, 32), "float32"), Y: T.Buffer((1, 401, 4, 32), "float32")):
    S = T.alloc_buffer((1, 4, 401, 401), "float32")
    X = T.alloc_buffer((1, 4, 401), "float32")
    E = T.alloc_buffer((1, 4, 401, 401), "float32")
    W = T.alloc_buffer((1, 4, 401), "float32")
    O = T.alloc_buffer((1, 4, 401, 32), "float32")
    for b, h, r, c, d in T.grid(1, 4, 401, 401, 32):
        with T.block("scores"):
            vb, vh, vr, vc, vd = T.axis.remap("SSSSR", [b, h, r, c, d])
            with T.init():
                S[vb, vh, vr, vc] = T.float32(0)
            S[vb, vh, vr, vc] = S[vb, vh, vr, vc] + Q[vb, vh, vr, vd] * K[vb, vh, vc, vd]
    for b, h, r, c in T.grid(1, 4, 401, 401):
        with T.block("max"):
            vb, vh, vr, vc = T.axis.remap("SSSR", [b, h, r, c])
            with T.init():
                X[vb, vh, vr] = T.float32("-inf")
            X[vb, vh, vr] = T.max(X[vb, vh, vr], S[vb, vh, vr, vc])
    for b, h, r, c in T.grid(1, 4, 401, 401):
        with T.block("exp"):
            vb, vh, vr, vc = T.axis.remap("SSSS", [b, h, r, c])
            E[vb, vh, vr, vc] = T.exp(S[vb, vh, vr, vc] - X[vb, vh, vr])
    for b, h, r, c in T.grid(1, 4, 401, 401):
        with T.block("sum"):
            vb, vh, vr, vc = T.axis.remap("SSSR", [b, h, r, c])
            with T.init():
                W[vb, vh, vr] = T.float32(0)
            W[vb, vh, vr] = W[vb, vh, vr] + E[vb, vh, vr, vc]
    for b, h, r, d, c in T.grid(1, 4, 401, 32, 401):
        with T.block("values"):
            vb, vh, vr, vd, vc = T.axis.remap("SSSSR", [b, h, r, d, c])
            with T.init():
                O[vb, vh, vr, vd] = T.float32(0)
            O[vb, vh, vr, vd] = O[vb, vh, vr, vd] + E[vb, vh, vr, vc] * V[vb, vh, vc, vd]
    for b, r, h, d in T.grid(1, 401, 4, 32):
        with T.block("divide"):
            vb, vr, vh, vd = T.axis.remap("SSSS", [b, r, h, d])
            Y[vb, vr, vh, vd] = O[vb, vh, vr, vd] / W[vb, vh, vr]
)");
  EXPECT_EQ(testing::parallel_extents(f, machine(512, 32)), std::vector<int64_t>{4});
}

TEST(attention, keeps_no_more_scores_than_a_block_has) {
  target::Target target = machine(512, 32);
  target.caches = {{.level = 1, .bytes = 48 << 10}, {.level = 2, .bytes = 64 << 10}};
  // Tiles of columns that leave a rest: several blocks write the scores together.
  const Shape shape{.rows = 60, .columns = 70, .depth = 4, .width = 33};
  ASSERT_EQ(attention_rows(60, 70, target), 12);
  EXPECT_LE(largest_allocation(attention_of(shape), target), 12 * (70 + 32));
}

// Attention as tensor expressions give it where lengths may be symbols: sums of unknown length have their start in a
// nest of their own. Of two heads of 5, which lie inside a row where that is wanted; values are 19 wide.
Function attention_of_lengths(const std::string& rows, const std::string& keys, bool heads_inside,
                              bool divides_last = false) {
  std::string text = R"(
@T.prim_func
def main(q: T.handle, k: T.handle, v: T.handle, b: T.handle, y: T.handle, n: T.int64(is_size_var=True), m: T.int64(is_size_var=True)):
    Q = T.match_buffer(q, (2, n, 5), "float32")
    K = T.match_buffer(k, (2, m, 5), "float32")
    V = T.match_buffer(v, (2, m, 19), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    Y = T.match_buffer(y, (n, 2, 19), "float32")
    S = T.alloc_buffer((2, n, m), "float32")
    X = T.alloc_buffer((2, n), "float32")
    E = T.alloc_buffer((2, n, m), "float32")
    T_ = T.alloc_buffer((2, n), "float32")
    P = T.alloc_buffer((2, n, m), "float32")
    O = T.alloc_buffer((2, n, 19), "float32")
    for h, i, j, d in T.grid(2, n, m, 5):
        with T.block("scores"):
            vh, vi, vj, vd = T.axis.remap("SSSR", [h, i, j, d])
            with T.init():
                S[vh, vi, vj] = T.float32(0)
            S[vh, vi, vj] = S[vh, vi, vj] + Q[vh, vi, vd] * K[vh, vj, vd]
    for h, i in T.grid(2, n):
        with T.block("max_init"):
            vh, vi = T.axis.remap("SS", [h, i])
            X[vh, vi] = T.float32("-inf")
    for h, i, j in T.grid(2, n, m):
        with T.block("max"):
            vh, vi, vj = T.axis.remap("SSR", [h, i, j])
            X[vh, vi] = T.max(X[vh, vi], S[vh, vi, vj] * T.float32(0.01) + B[vi, vj])
    for h, i, j in T.grid(2, n, m):
        with T.block("exp"):
            vh, vi, vj = T.axis.remap("SSS", [h, i, j])
            E[vh, vi, vj] = T.exp(S[vh, vi, vj] * T.float32(0.01) + B[vi, vj] - X[vh, vi])
    for h, i in T.grid(2, n):
        with T.block("sum_init"):
            vh, vi = T.axis.remap("SS", [h, i])
            T_[vh, vi] = T.float32(0)
    for h, i, j in T.grid(2, n, m):
        with T.block("sum"):
            vh, vi, vj = T.axis.remap("SSR", [h, i, j])
            T_[vh, vi] = T_[vh, vi] + E[vh, vi, vj]
    for h, i, j in T.grid(2, n, m):
        with T.block("norm"):
            vh, vi, vj = T.axis.remap("SSS", [h, i, j])
            P[vh, vi, vj] = E[vh, vi, vj] / T_[vh, vi]
    for h, i, w in T.grid(2, n, 19):
        with T.block("values_init"):
            vh, vi, vw = T.axis.remap("SSS", [h, i, w])
            O[vh, vi, vw] = T.float32(0)
    for h, i, w, j in T.grid(2, n, 19, m):
        with T.block("values"):
            vh, vi, vw, vj = T.axis.remap("SSSR", [h, i, w, j])
            O[vh, vi, vw] = O[vh, vi, vw] + P[vh, vi, vj] * V[vh, vj, vw]
    for i, h, w in T.grid(n, 2, 19):
        with T.block("permute"):
            vi, vh, vw = T.axis.remap("SSS", [i, h, w])
            Y[vi, vh, vw] = O[vh, vi, vw]
)";
  const auto swap = [&](const std::string& from, const std::string& to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  };
  if (divides_last) {
    const size_t norm = text.find("    for h, i, j in T.grid(2, n, m):\n        with T.block(\"norm\")");
    text.replace(norm, text.find("    for h, i, w in T.grid(2, n, 19):\n        with T.block(\"values_init\")") - norm,
                 R"(
    for h, i in T.grid(2, n):
        with T.block("share"):
            vh, vi = T.axis.remap("SS", [h, i])
            R[vh, vi, 0] = T.float32(1) / T.max(T_[vh, vi], T.float32(1))
)");
    swap("P = T.alloc_buffer((2, n, m), \"float32\")", "R = T.alloc_buffer((2, n, 1), \"float32\")");
    swap("P[", "E[");
    swap("Y[vi, vh, vw] = O[vh, vi, vw]", "Y[vi, vh, vw] = R[vh, vi, 0] * O[vh, vi, vw]");
  }
  if (!heads_inside) {
    text.resize(text.find("    for i, h, w in T.grid(n, 2, 19)"));
    swap("    O = T.alloc_buffer((2, n, 19), \"float32\")\n", "");
    swap("y, (n, 2, 19)", "y, (2, n, 19)");
    swap("O[", "Y[");
  }
  const auto fix = [&](const std::string& symbol, const std::string& extent) {
    if (extent == symbol) return;
    swap(", " + symbol + ": T.int64(is_size_var=True)", "");
    for (const char* around : {"({}, ", ", {})", ", {}, "})
      swap(fmt::format(fmt::runtime(around), symbol), fmt::format(fmt::runtime(around), extent));
  };
  fix("n", rows);
  fix("m", keys);
  return testing::from_text(text);
}

TEST(attention, takes_lengths_that_only_the_run_knows) {
  std::vector<std::map<std::string, int64_t>> lengths;
  for (const auto& [rows, keys] : {std::pair{1, 1}, {3, 40}, {28, 32}, {61, 51}, {12, 7}, {0, 3}, {5, 0}})
    lengths.push_back({{"n", rows}, {"m", keys}});
  for (const auto& [bits, registers] : machines)
    for (const auto [heads_inside, divides_last] : {std::pair{false, false}, {true, false}, {true, true}})
      EXPECT_EQ(scheduled_once(attention_of_lengths("n", "m", heads_inside, divides_last), machine(bits, registers),
                               1e-5, lengths),
                "attention")
          << bits << " bits, divides last " << divides_last << "\n"
          << last_remarks;
}

TEST(attention, takes_one_length_that_only_the_run_knows) {
  const auto each = [](const std::string& symbol) {
    std::vector<std::map<std::string, int64_t>> lengths;
    for (const int64_t length : {0, 1, 17, 29, 45}) lengths.push_back({{symbol, length}});
    return lengths;
  };
  for (const bool heads_inside : {false, true}) {
    EXPECT_EQ(scheduled_once(attention_of_lengths("n", "37", heads_inside), machine(512, 32), 1e-5, each("n")),
              "attention")
        << "rows of 37\n"
        << last_remarks;
    for (const char* rows : {"1", "3", "21", "31", "61"})
      EXPECT_EQ(scheduled_once(attention_of_lengths(rows, "m", heads_inside), machine(512, 32), 1e-5, each("m")),
                "attention")
          << rows << " rows\n"
          << last_remarks;
  }
}

TEST(attention, ends_with_a_shorter_block_where_none_divides_the_rows) {
  for (const auto& [bits, registers] : machines) {
    target::Target target = machine(bits, registers);
    target.caches = {{.level = 1, .bytes = 8 << 10}, {.level = 2, .bytes = 32 << 10}};
    const Shape shape{.heads = 1, .rows = 61, .columns = 130, .depth = 3, .width = 17};
    ASSERT_GT(61 % attention_rows(61, 130, target), 0);
    EXPECT_EQ(scheduled(attention_of(shape), target, 1e-5), "attention") << bits << " bits\n" << last_remarks;
    EXPECT_LE(largest_allocation(attention_of(shape), target), attention_rows(61, 130, target) * (130 + 32))
        << bits << " bits";
  }
}

// No buffer is as large as the scores: each thread has memory for the scores of one block.
TEST(attention, keeps_no_scores_of_lengths_that_only_the_run_knows) {
  AnalyticDecider model;
  const Schedule done = schedule_function(Schedule::create(attention_of_lengths("n", "m", true)).value_or_throw(),
                                          machine(512, 32), model, {});
  const Function kernel = driver::lower_to_kernel(done.mod().find_as<PrimFunc>("main")).value_or_throw();
  ir::post_order(kernel->body, [&](const NodeRef& n) {
    const auto* allocate = n.as<Allocate>();
    for (const Expr& extent : allocate ? allocate->extents : std::vector<Expr>{})
      for (const Var& v : free_vars(extent)) EXPECT_EQ(v->name, "m") << "the number of rows decides of memory";
  });
}

TEST(attention, says_why_it_declines) {
  const auto declined = [](const Function& f, const target::Target& target) {
    std::string why;
    ir::PassContext context;
    context.on_remark = [&](const ir::Remark& remark) {
      if (remark.pass == "attention" && !remark.taken) why = remark.text;
    };
    AnalyticDecider model;
    schedule_function(Schedule::create(f).value_or_throw(), target, model, context);
    return why;
  };
  EXPECT_EQ(declined(testing::softmax(int64(4), int64(32)), machine(512, 32)), "it does not hold two products");
}

TEST(attention, chooses_rows_by_the_second_cache) {
  target::Target target = machine(512, 32);
  target.caches = {{.level = 2, .bytes = 1 << 20}};
  EXPECT_EQ(attention_rows(128, 128, target), 8) << "one tile";
  EXPECT_EQ(attention_rows(34, 128, target), 34) << "32 KB, on the stack";
  EXPECT_EQ(attention_rows(512, 512, target), 8);
  EXPECT_EQ(attention_rows(2048, 2048, target), 8);
  EXPECT_EQ(attention_rows(197, 197, target), 197) << "a prime that fits as it is";
  EXPECT_EQ(attention_rows(1, 100, target), 1);
  EXPECT_EQ(attention_rows(1499, 1499, target), 28) << "a prime that does not: the last block is shorter";
  EXPECT_EQ(attention_rows(64, 100000, target), 32) << "more than fits";
  EXPECT_EQ(attention_rows(11, 100000, target), 11);
  EXPECT_EQ(attention_rows(std::nullopt, 100, target), 56);
  EXPECT_EQ(attention_rows(std::nullopt, std::nullopt, target), 28);
  EXPECT_EQ(attention_rows(1, std::nullopt, target), 1);
  target.vector_registers = 16;
  target.caches = {{.level = 2, .bytes = 512 << 10}};
  EXPECT_EQ(attention_rows(std::nullopt, std::nullopt, target), 18) << "tiles of six rows";
  EXPECT_EQ(attention_rows(64, 64, target), 64) << "all scores on the stack";
  EXPECT_EQ(attention_rows(384, 384, target), 18) << "not one low tile";
  EXPECT_EQ(attention_rows(512, 512, target), 18) << "not two tiles of four rows";
  EXPECT_EQ(attention_rows(16, 2048, target), 16) << "no more than there are";
  EXPECT_EQ(attention_rows(4096, 4096, target), 12) << "no more than fits";
  EXPECT_EQ(attention_rows(4096, 100000, target), 6) << "one tile does not fit either";
}

}  // namespace
}  // namespace lathe::schedule
