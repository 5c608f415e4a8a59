// What the primitives must not refuse: for each, programs where it is legal, some only by the last tier of proof. The
// other half of refusals_test.cpp.
#include <gtest/gtest.h>

#include "schedule/testing/programs.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

using support::Diagnostics;
using testing::Builder;
using testing::f32;

// A program, and the step on it: handles come from the schedule, the result is the step's.
struct Legal {
  const char* primitive;
  const char* where;
  Function program;
  std::function<Diagnostics(Schedule&)> step;
  std::map<std::string, int64_t> symbols;
};

template <class T>
Diagnostics refused_with(const Result<T>& result) {
  return result.ok() ? Diagnostics{} : result.diagnostics();
}

BlockRV named_block(Schedule& s, const char* name) { return s.get_block(name).value_or_throw(); }
std::vector<LoopRV> named_loops(Schedule& s, const char* name) {
  return s.get_loops(named_block(s, name)).value_or_throw();
}
LoopRV named_loop(Schedule& s, const char* name, size_t at) { return named_loops(s, name).at(at); }

Function whole_product() { return testing::matmul(int64(8), int64(6), int64(4)); }
Function three_layers() { return testing::dense(int64(8), int64(6), int64(4)); }

// T[i + 2] = 2 X[i], and then Y[i] = T[i + shift] + 1, both for i below 5; T has values before.
Function shifted_copies(int64_t shift) {
  Builder b;
  const Buffer x = b.input("X", {int64(5)}), t = b.output("T", {int64(9)}), y = b.output("Y", {int64(5)});
  const auto nest = [&](const char* name, const Buffer& to, const auto& at, const auto& value) {
    const Var i = var("i"), vi = var("vi");
    const Ref<Block> block =
        make<Block>(std::vector<IterVar>{make<IterVarNode>(Range{int64(0), int64(5)}, vi, IterType::spatial)},
                    std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{},
                    std::vector<BufferRegion>{}, std::string(name), Stmt{},
                    Stmt(make<BufferStore>(to, value(vi), std::vector<Expr>{at(vi)}, Expr())));
    b.add(make<For>(i, int64(0), int64(5), ForKind::serial,
                    Stmt(make<BlockRealize>(std::vector<Expr>{i}, boolean(true), block))));
  };
  nest("copy", t, [](const Expr& i) { return i + 2; }, [&](const Expr& i) { return load(x, {i}) * f32(2); });
  nest("use", y, [](const Expr& i) { return i; }, [&](const Expr& i) { return load(t, {i + shift}) + f32(1); });
  return b.build();
}

// A[at(i, j)] = A[from(i, j)] + 1 for i and j below n.
Function self_update(const Expr& n, std::vector<Expr> shape, const std::function<std::vector<Expr>(Expr, Expr)>& at,
                     const std::function<std::vector<Expr>(Expr, Expr)>& from) {
  Builder b;
  const Buffer a = b.output("A", std::move(shape));
  const Var i = var("i"), j = var("j"), vi = var("vi"), vj = var("vj");
  const Ref<Block> step = make<Block>(
      std::vector<IterVar>{make<IterVarNode>(Range{int64(0), n}, vi, IterType::spatial),
                           make<IterVarNode>(Range{int64(0), n}, vj, IterType::spatial)},
      std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{point_region(a, from(vi, vj))},
      std::vector<BufferRegion>{point_region(a, at(vi, vj))}, std::string("step"), Stmt{},
      Stmt(make<BufferStore>(a, load(a, from(vi, vj)) + f32(1), at(vi, vj), Expr())));
  Stmt s = make<BlockRealize>(std::vector<Expr>{i, j}, boolean(true), step);
  s = make<For>(j, int64(0), n, ForKind::serial, s);
  b.add(make<For>(i, int64(0), n, ForKind::serial, s));
  return b.build();
}

Function along_diagonal() {
  return self_update(
      int64(5), {int64(6), int64(6)}, [](Expr i, Expr j) { return std::vector<Expr>{i + 1, j + 1}; },
      [](Expr i, Expr j) { return std::vector<Expr>{i, j}; });
}
Function odd_from_even() {
  return self_update(
      int64(5), {int64(12), int64(5)}, [](Expr i, Expr j) { return std::vector<Expr>{i * 2 + 1, j}; },
      [](Expr i, Expr j) { return std::vector<Expr>{i * 2 + 2, j}; });
}
Function second_half(const Var& n) {
  return self_update(
      n, {n, n * 2}, [=](Expr i, Expr j) { return std::vector<Expr>{i, j + n}; },
      [](Expr i, Expr j) { return std::vector<Expr>{i, j}; });
}

Function padded_row() {
  Builder b;
  const Buffer x = b.input("X", {int64(6)}), p = b.output("P", {int64(8)});
  b.compute("pad", p, [&](const std::vector<Expr>& i) {
    const Expr at = i[0] - 1;
    return if_then_else(logical_and(at >= 0, at < 6), load(x, {at}), f32(0));
  });
  return b.build();
}

// P[i] = X[i - 1] for i - 1 from 0 below `filled`, of n, else zero.
Function row_in_zeros(const Expr& n, const Expr& filled) {
  Builder b;
  const Buffer x = b.input("X", {n}), p = b.output("P", {n + 2});
  b.compute("pad", p, [&](const std::vector<Expr>& i) {
    const Expr at = i[0] - 1;
    return if_then_else(logical_and(at >= 0, at < filled), load(x, {at}), f32(0));
  });
  return b.build();
}

// P[i] = X[i - 1] where there is one, else the nearest.
Function edged_row() {
  Builder b;
  const Buffer x = b.input("X", {int64(6)}), p = b.output("P", {int64(8)});
  b.compute("pad", p, [&](const std::vector<Expr>& i) {
    const Expr at = i[0] - 1;
    return if_then_else(logical_and(at >= 0, at < 6), load(x, {at}), load(x, {max(min(at, int64(5)), int64(0))}));
  });
  return b.build();
}

// Y[i, j] = X[i // 2 + i % 2, j // 3] + 1 for i below n.
Function resized(const Expr& n) {
  Builder b;
  const Buffer x = b.input("X", {n + 1, int64(4)}), y = b.output("Y", {n, int64(12)});
  b.compute("resize", y, [&](const std::vector<Expr>& i) {
    return load(x, {floordiv(i[0], int64(2)) + floormod(i[0], int64(2)), floordiv(i[1], int64(3))}) + f32(1);
  });
  return b.build();
}

// D[i] = 2 X[i], and then Y[i] = D[i] + D[i + 1].
Function neighbours_of_doubled() {
  Builder b;
  const Buffer x = b.input("X", {int64(9)}), d = b.inner("D", {int64(9)}), y = b.output("Y", {int64(8)});
  b.compute("double", d, [&](const std::vector<Expr>& i) { return load(x, i) * f32(2); });
  b.compute("add", y, [&](const std::vector<Expr>& i) { return load(d, i) + load(d, {i[0] + 1}); });
  return b.build();
}

std::vector<Legal> legal_steps() {
  const Var n = ir::size_var("n");
  const std::map<std::string, int64_t> seven{{"n", 7}};
  const Function unknown = testing::dense(n, int64(6), int64(4));
  return {
      {"split", "a symbolic extent with a tail", unknown,
       [](Schedule& s) { return refused_with(s.split(named_loop(s, "matmul", 0), {Factor(), int64_t{4}})); }, seven},
      {"split",
       "without a predicate where the factors divide",
       whole_product(),
       [](Schedule& s) { return refused_with(s.split(named_loop(s, "matmul", 0), {Factor(), int64_t{4}}, true)); },
       {}},
      {"split",
       "without a predicate, on the caller's word that the factor divides",
       unknown,
       [](Schedule& s) { return refused_with(s.split(named_loop(s, "matmul", 0), {Factor(), int64_t{4}}, true)); },
       {{"n", 8}}},
      {"fuse",
       "of a reduction",
       whole_product(),
       [](Schedule& s) { return refused_with(s.fuse(named_loops(s, "matmul"))); },
       {}},
      {"reorder",
       "reduce loops outside",
       whole_product(),
       [](Schedule& s) {
         const auto l = named_loops(s, "matmul");
         return refused_with(s.reorder({l[2], l[0], l[1]}));
       },
       {}},
      {"reorder",
       "instances that depend on one another and keep their order",
       along_diagonal(),
       [](Schedule& s) { return refused_with(s.reorder({named_loop(s, "step", 1), named_loop(s, "step", 0)})); },
       {}},
      {"merge",
       "what is read was written in an earlier iteration",
       shifted_copies(1),
       [](Schedule& s) { return refused_with(s.merge({named_loop(s, "copy", 0), named_loop(s, "use", 0)})); },
       {}},
      {"loop_partition",
       "of a reduction",
       whole_product(),
       [](Schedule& s) { return refused_with(s.loop_partition(named_loop(s, "matmul", 2), {int64_t{1}, Factor()})); },
       {}},
      {"peel", "of a symbolic extent", unknown,
       [](Schedule& s) { return refused_with(s.peel(named_loop(s, "relu", 0), int64_t{4})); }, seven},
      {"strip_mine", "of a symbolic extent", unknown,
       [](Schedule& s) { return refused_with(s.strip_mine(named_loop(s, "relu", 0), int64_t{4})); }, seven},
      {"add_unit_loop",
       "",
       whole_product(),
       [](Schedule& s) { return refused_with(s.add_unit_loop(named_block(s, "matmul"))); },
       {}},
      {"parallel",
       "odd elements from even ones",
       odd_from_even(),
       [](Schedule& s) { return refused_with(s.parallel(named_loop(s, "step", 0))); },
       {}},
      {"parallel", "the second half from the first, of any length", second_half(n),
       [](Schedule& s) { return refused_with(s.parallel(named_loop(s, "step", 1))); }, seven},
      {"parallel", "strips of which the last is shorter, in tiles", unknown,
       [](Schedule& s) {
         const std::vector<LoopRV> strips = s.strip_mine(named_loop(s, "relu", 0), int64_t{6}).value_or_throw();
         s.peel(strips[1], int64_t{2}).value_or_throw();
         return refused_with(s.parallel(strips[0]));
       },
       seven},
      {"vectorize",
       "the diagonal's inner loop",
       along_diagonal(),
       [](Schedule& s) { return refused_with(s.vectorize(named_loop(s, "step", 1))); },
       {}},
      {"unroll",
       "a loop that carries dependences",
       along_diagonal(),
       [](Schedule& s) { return refused_with(s.unroll(named_loop(s, "step", 0))); },
       {}},
      {"bind", "an unknown number of blocks", second_half(n),
       [](Schedule& s) { return refused_with(s.bind(named_loop(s, "step", 0), "blockIdx.x")); }, seven},
      {"compute_at",
       "a producer at its consumer's rows",
       three_layers(),
       [](Schedule& s) { return refused_with(s.compute_at(named_block(s, "bias_add"), named_loop(s, "relu", 0))); },
       {}},
      {"compute_at", "of symbolic extents", unknown,
       [](Schedule& s) { return refused_with(s.compute_at(named_block(s, "matmul"), named_loop(s, "bias_add", 1))); },
       seven},
      {"reverse_compute_at",
       "a consumer at tiles with a tail",
       three_layers(),
       [](Schedule& s) {
         const auto parts = s.split(named_loop(s, "matmul", 0), {Factor(), int64_t{3}}).value_or_throw();
         return refused_with(s.reverse_compute_at(named_block(s, "bias_add"), parts[0]));
       },
       {}},
      {"reverse_compute_at",
       "a consumer behind the updates of what is set elsewhere in the nest",
       three_layers(),
       [](Schedule& s) {
         const auto parts = s.split(named_loop(s, "matmul", 0), {Factor(), int64_t{3}}).value_or_throw();
         (void)s.decompose_reduction(named_block(s, "matmul"), parts[1]).value_or_throw();
         return refused_with(s.reverse_compute_at(named_block(s, "bias_add"), parts[1]));
       },
       {}},
      {"compute_inline",
       "",
       three_layers(),
       [](Schedule& s) { return refused_with(s.compute_inline(named_block(s, "bias_add"))); },
       {}},
      {"reverse_compute_inline",
       "",
       three_layers(),
       [](Schedule& s) { return refused_with(s.reverse_compute_inline(named_block(s, "relu"))); },
       {}},
      {"decompose_reduction",
       "inside the rows",
       whole_product(),
       [](Schedule& s) {
         return refused_with(s.decompose_reduction(named_block(s, "matmul"), named_loop(s, "matmul", 1)));
       },
       {}},
      {"fuse_reduction_epilogue",
       "a bias",
       three_layers(),
       [](Schedule& s) {
         return refused_with(s.fuse_reduction_epilogue(named_block(s, "matmul"), named_block(s, "bias_add")));
       },
       {}},
      {"rfactor",
       "of an inner part",
       whole_product(),
       [](Schedule& s) {
         const auto parts = s.split(named_loop(s, "matmul", 2), {Factor(), int64_t{2}}).value_or_throw();
         return refused_with(s.rfactor(parts[1], 1));
       },
       {}},
      {"cache_read",
       "",
       whole_product(),
       [](Schedule& s) { return refused_with(s.cache_read(named_block(s, "matmul"), 1, "local")); },
       {}},
      {"cache_write", "of symbolic extents", unknown,
       [](Schedule& s) { return refused_with(s.cache_write(named_block(s, "relu"), 0, "local")); }, seven},
      {"read_at",
       "",
       whole_product(),
       [](Schedule& s) {
         return refused_with(s.read_at(named_loop(s, "matmul", 0), named_block(s, "matmul"), 0, "local"));
       },
       {}},
      {"write_at",
       "",
       whole_product(),
       [](Schedule& s) {
         return refused_with(s.write_at(named_loop(s, "matmul", 0), named_block(s, "matmul"), 0, "local"));
       },
       {}},
      {"cache_inplace",
       "an update of what it reads",
       self_update(
           int64(4), {int64(4), int64(4)}, [](Expr i, Expr j) { return std::vector<Expr>{i, j}; },
           [](Expr i, Expr j) { return std::vector<Expr>{i, j}; }),
       [](Schedule& s) { return refused_with(s.cache_inplace(named_block(s, "step"), 0, "local")); },
       {}},
      {"reindex",
       "of what a reduction writes",
       whole_product(),
       [](Schedule& s) { return refused_with(s.reindex(named_block(s, "matmul"), {.writes = true})); },
       {}},
      {"reindex",
       "of a square that is read",
       testing::matmul(int64(6), int64(4), int64(6)),
       [](Schedule& s) { return refused_with(s.reindex(named_block(s, "matmul"), {.writes = false})); },
       {}},
      {"reindex_cache_read",
       "transposed",
       whole_product(),
       [](Schedule& s) {
         const IndexMap map = parse_index_map("lambda i, j, k: (k, i)").value_or_throw();
         return refused_with(s.reindex_cache_read(named_block(s, "matmul"), 0, "local", map));
       },
       {}},
      {"reindex_cache_write",
       "flattened",
       whole_product(),
       [](Schedule& s) {
         const IndexMap map = parse_index_map("lambda i, j, k: (i * 6 + j,)").value_or_throw();
         return refused_with(s.reindex_cache_write(named_block(s, "matmul"), 0, "local", map));
       },
       {}},
      {"transform_layout",
       "with gaps",
       three_layers(),
       [](Schedule& s) {
         const IndexMap map = parse_index_map("lambda i, j: (i // 3, j, i % 3)").value_or_throw();
         return refused_with(s.transform_layout(named_block(s, "matmul"), {.writes = true}, map));
       },
       {}},
      {"transform_block_layout",
       "instances that keep their order",
       along_diagonal(),
       [](Schedule& s) {
         const IndexMap map = parse_index_map("lambda i, j: (i * 5 + j,)").value_or_throw();
         return refused_with(s.transform_block_layout(named_block(s, "step"), map));
       },
       {}},
      {"set_scope",
       "",
       three_layers(),
       [](Schedule& s) { return refused_with(s.set_scope(named_block(s, "matmul"), 0, "local")); },
       {}},
      {"storage_align",
       "",
       three_layers(),
       [](Schedule& s) { return refused_with(s.storage_align(named_block(s, "matmul"), 0, 0, 8, 1)); },
       {}},
      {"set_axis_separator",
       "of a parameter",
       whole_product(),
       [](Schedule& s) { return refused_with(s.set_axis_separator(named_block(s, "matmul"), {.writes = true}, {1})); },
       {}},
      {"cache_index",
       "whole indices",
       padded_row(),
       [](Schedule& s) { return refused_with(s.cache_index(named_block(s, "pad"), "local", 0)); },
       {}},
      {"cache_index", "of an unknown number of rows", resized(n),
       [](Schedule& s) { return refused_with(s.cache_index(named_block(s, "resize"), "local", 1)); }, seven},
      {"rolling_buffer",
       "a row for the next window",
       neighbours_of_doubled(),
       [](Schedule& s) {
         (void)s.compute_at(named_block(s, "double"), named_loop(s, "add", 0)).value_or_throw();
         return refused_with(s.rolling_buffer(named_block(s, "double"), 0));
       },
       {}},
      {"annotate_buffer_access",
       "less than what indices alone say",
       resized(int64(6)),
       [](Schedule& s) {
         const IndexMap map = parse_index_map("lambda i, j: (i // 2, i // 2 + 2, j // 3, j // 3 + 1)").value_or_throw();
         return refused_with(s.annotate_buffer_access(named_block(s, "resize"), 0, "read", map));
       },
       {}},
      {"enter_postproc",
       "",
       whole_product(),
       [](Schedule& s) {
         s.enter_postproc();
         return Diagnostics{};
       },
       {}},
      {"prefetch",
       "columns of a product's second matrix, row by row of the first",
       whole_product(),
       [](Schedule& s) {
         const BlockRV block = named_block(s, "matmul");
         return refused_with(s.prefetch(block, 0, named_loop(s, "matmul", 0), named_loop(s, "matmul", 2)));
       },
       {}},
      {"prefetch",
       "the step after this one, in pieces",
       three_layers(),
       [](Schedule& s) {
         const LoopRV step = named_loop(s, "matmul", 0);
         return refused_with(s.prefetch(named_block(s, "matmul"), 0, step, step, {.begin = 1, .end = 3, .of = 4}));
       },
       {}},
      {"unsafe_set_dtype",
       "",
       three_layers(),
       [](Schedule& s) { return refused_with(s.unsafe_set_dtype(named_block(s, "matmul"), 0, "float64")); },
       {}},
      {"reorder_block_iter_var",
       "",
       whole_product(),
       [](Schedule& s) { return refused_with(s.reorder_block_iter_var(named_block(s, "matmul"), {2, 0, 1})); },
       {}},
      {"blockize",
       "with its reduce loop outside",
       whole_product(),
       [](Schedule& s) {
         const auto l = named_loops(s, "matmul");
         (void)s.reorder({l[2], l[0], l[1]}).value_or_throw();
         return refused_with(s.blockize(l[0]));
       },
       {}},
      {"decompose_padding",
       "",
       padded_row(),
       [](Schedule& s) { return refused_with(s.decompose_padding(named_block(s, "pad"), named_loop(s, "pad", 0))); },
       {}},
      {"split_padding",
       "",
       padded_row(),
       [](Schedule& s) { return refused_with(s.split_padding(named_block(s, "pad"))); },
       {}},
      {"split_padding", "of unknown size", row_in_zeros(n, n),
       [](Schedule& s) { return refused_with(s.split_padding(named_block(s, "pad"))); }, seven},
      {"split_padding",
       "that is read",
       edged_row(),
       [](Schedule& s) { return refused_with(s.split_padding(named_block(s, "pad"))); },
       {}},
      {"pad_einsum",
       "",
       whole_product(),
       [](Schedule& s) { return refused_with(s.pad_einsum(named_block(s, "matmul"), {5, 4, 3})); },
       {}},
  };
}

TEST(acceptance, of_what_is_legal) {
  std::set<std::string> primitives;
  for (const Legal& legal : legal_steps()) {
    SCOPED_TRACE(fmt::format("{}: {}", legal.primitive, legal.where));
    Schedule schedule = Schedule::create(legal.program).value_or_throw();
    const Diagnostics refused = legal.step(schedule);
    EXPECT_TRUE(refused.empty()) << support::render(refused);
    primitives.insert(legal.primitive);
    const Function after = schedule.mod().find_as<PrimFunc>("main");
    // Sums over parts round differently; everything else gives the same bits.
    if (legal.primitive == std::string("rfactor") || legal.primitive == std::string("unsafe_set_dtype")) continue;
    EXPECT_EQ(tir::testing::difference(legal.program, after, 5, legal.symbols), "");
  }
  EXPECT_GE(primitives.size(), 39u);
}

}  // namespace
}  // namespace lathe::schedule
