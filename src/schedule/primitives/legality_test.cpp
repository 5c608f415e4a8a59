// Every instruction of a trace on programs where it must be refused, and on programs where it must not: a new one
// without both fails here. The last line of a trace is the instruction that the row is about.
#include <gtest/gtest.h>

#include "schedule/codes.h"
#include "schedule/instruction.h"
#include "schedule/testing/programs.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

// B = 2 A, C = B + A, D = C * C over 6 by 8 elements.
Function elementwise_chain() {
  testing::Builder b;
  const std::vector<Expr> shape{int64(6), int64(8)};
  const Buffer a = b.input("A", shape), x = b.inner("B", shape), y = b.inner("C", shape), z = b.output("D", shape);
  b.compute("B", x, [&](const std::vector<Expr>& i) { return load(a, i) * testing::f32(2); });
  b.compute("C", y, [&](const std::vector<Expr>& i) { return load(x, i) + load(a, i); });
  b.compute("D", z, [&](const std::vector<Expr>& i) { return load(y, i) * load(y, i); });
  return b.build();
}

// B[i] = 2 A[i % 8] for ten i, then D[i] = B[i] + B[i + 2].
Function sliding() {
  testing::Builder b;
  const Buffer a = b.input("A", {int64(8)}), x = b.inner("B", {int64(10)}), z = b.output("D", {int64(8)});
  b.compute("B", x, [&](const std::vector<Expr>& i) { return load(a, {floormod(i[0], int64(8))}) * testing::f32(2); });
  b.compute("D", z, [&](const std::vector<Expr>& i) { return load(x, i) + load(x, {i[0] + 2}); });
  return b.build();
}

// P = A with a zero on either side, D = P + 1.
Function padded() {
  testing::Builder b;
  const Buffer a = b.input("A", {int64(6)}), p = b.inner("P", {int64(8)}), d = b.output("D", {int64(8)});
  b.compute("P", p, [&](const std::vector<Expr>& i) {
    return if_then_else(logical_and(i[0] >= 1, i[0] < 7), load(a, {i[0] - 1}), testing::f32(0));
  });
  b.compute("D", d, [&](const std::vector<Expr>& i) { return load(p, i) + testing::f32(1); });
  return b.build();
}

// An intrinsic that doubles eight neighbours, which is its own implementation.
std::shared_ptr<const Context> doubling() {
  static const std::shared_ptr<const Context> made = [] {
    const Function f = testing::from_text(
        "@T.prim_func\ndef main(X: T.Buffer((8,), \"float32\"), Y: T.Buffer((8,), \"float32\")):\n"
        "    for i in range(8):\n        with T.block(\"row\"):\n            v = T.axis.spatial(8, i)\n"
        "            Y[v] = X[v] * T.float32(2)\n");
    auto context = std::make_shared<Context>();
    context->add("double", {f, f}).value_or_throw();
    return context;
  }();
  return made;
}

// A[i] = A[i] + 1 in place, six times.
Function in_place() {
  return testing::from_text(
      "@T.prim_func\ndef main(A: T.Buffer((6,), \"float32\")):\n"
      "    for i in range(6):\n        with T.block(\"step\"):\n            v = T.axis.spatial(6, i)\n"
      "            A[v] = A[v] + T.float32(1)\n");
}

// B[i] = A[i], B[i + 4] = 2 A[i], C[i] = B[i + from], each for four i.
Function halves(int from) {
  return testing::from_text(
      fmt::format("@T.prim_func\ndef main(A: T.Buffer((4,), \"float32\"), C: T.Buffer((4,), \"float32\")):\n"
                  "    B = T.alloc_buffer((8,), \"float32\")\n"
                  "    for i in range(4):\n        with T.block(\"first\"):\n"
                  "            v = T.axis.spatial(4, i)\n            B[v] = A[v]\n"
                  "    for j in range(4):\n        with T.block(\"second\"):\n"
                  "            v = T.axis.spatial(4, j)\n            B[v + 4] = A[v] * T.float32(2)\n"
                  "    for k in range(4):\n        with T.block(\"use\"):\n"
                  "            v = T.axis.spatial(4, k)\n            C[v] = B[v + {}]\n",
                  from));
}
Function first_half_used() { return halves(0); }
Function both_halves_used() { return halves(1); }

Function product() { return testing::matmul(int64(8), int64(6), int64(4)); }
Function layers() { return testing::dense(int64(8), int64(6), int64(4)); }

// Beginnings of traces: handles of a product, and of the blocks of the chain.
constexpr const char* matmul = "b0 = sch.get_block(\"matmul\")\nl1, l2, l3 = sch.get_loops(b0)\n";
constexpr const char* chain =
    "b0 = sch.get_block(\"B\")\nl1, l2 = sch.get_loops(b0)\nb3 = sch.get_block(\"C\")\nl4, l5 = sch.get_loops(b3)\n"
    "b6 = sch.get_block(\"D\")\nl7, l8 = sch.get_loops(b6)\n";
constexpr const char* windows = "b0 = sch.get_block(\"B\")\nb1 = sch.get_block(\"D\")\nl2, = sch.get_loops(b1)\n";
constexpr const char* padding =
    "b0 = sch.get_block(\"P\")\nl1, = sch.get_loops(b0)\nb2 = sch.get_block(\"D\")\nl3, = sch.get_loops(b2)\n";
constexpr const char* update = "b0 = sch.get_block(\"step\")\nl1, = sch.get_loops(b0)\n";

constexpr const char* two_halves =
    "b0 = sch.get_block(\"first\")\nl1, = sch.get_loops(b0)\nb2 = sch.get_block(\"use\")\nl3, = sch.get_loops(b2)\n";
constexpr const char* behind_product =
    "b0 = sch.get_block(\"matmul\")\nb1 = sch.get_block(\"bias_add\")\nb2 = sch.get_block(\"relu\")\n";

struct Row {
  Function (*program)();
  const char* before;
  const char* step;
  const support::Code* refusal = nullptr;  // null: it must be accepted
  bool rounds = false;                     // the sum comes out otherwise
};

std::vector<Row> rows() {
  using namespace codes;  // NOLINT: a table of codes
  return {
      {product, "", "sch.work_on(\"main\")"},
      {product, "", "sch.work_on(\"other\")", &no_function},
      {product, "", "v0 = sch.sample_categorical(candidates=[1, 2], probs=[0.5, 0.5], decision=1)"},
      {product, "", "v0 = sch.sample_categorical(candidates=[1, 2], probs=[0.5], decision=1)", &bad_argument},
      {product, matmul, "v4, v5 = sch.sample_perfect_tile(l1, n=2, decision=[2, 4])"},
      {product, matmul, "v4, v5 = sch.sample_perfect_tile(l1, n=2, decision=[3, 4])", &bad_argument},
      {product, matmul, "v4, v5 = sch.sample_partitioned_tile(l1, n=2, partition_pos=1, decision=[2, 4])"},
      {product, matmul, "v4, v5 = sch.sample_partitioned_tile(l1, n=2, partition_pos=3, decision=[2, 4])",
       &bad_argument},
      {elementwise_chain, chain, "l9 = sch.sample_compute_location(b0, decision=1)"},
      {elementwise_chain, chain, "l9 = sch.sample_compute_location(b0, decision=2)", &bad_argument},
      {product, "", "b0 = sch.get_block(\"matmul\")"},
      {product, "", "b0 = sch.get_block(\"other\")", &no_block},
      {product, "b0 = sch.get_block(\"matmul\")\n", "l1, l2, l3 = sch.get_loops(b0)"},
      {elementwise_chain, "b0 = sch.get_block(\"B\")\nsch.compute_inline(b0)\n", "l1, l2 = sch.get_loops(b0)", &gone},
      {product, matmul, "b4, = sch.get_child_blocks(l1)"},
      {elementwise_chain, "b0 = sch.get_block(\"B\")\nsch.compute_inline(b0)\n", "b1, = sch.get_child_blocks(b0)",
       &gone},
      {elementwise_chain, chain, "b9, = sch.get_producers(b3)"},
      {elementwise_chain, "b0 = sch.get_block(\"B\")\nsch.compute_inline(b0)\n", "b1, = sch.get_producers(b0)", &gone},
      {elementwise_chain, chain, "b9, = sch.get_consumers(b3)"},
      {elementwise_chain, "b0 = sch.get_block(\"B\")\nsch.compute_inline(b0)\n", "b1, = sch.get_consumers(b0)", &gone},
      {elementwise_chain, "b0 = sch.get_block(\"root\")\n", "b1, = sch.get_output_blocks(b0)"},
      {elementwise_chain, "b0 = sch.get_block(\"B\")\nsch.compute_inline(b0)\n", "b1, = sch.get_output_blocks(b0)",
       &gone},
      {product, matmul, "l4, l5 = sch.split(l1, factors=[None, 3])"},
      {product, matmul, "l4, l5 = sch.split(l1, factors=[2, 3])", &bad_argument},
      {product, matmul, "l4, l5 = sch.split(l1, factors=[1, 8], preserve_unit_iters=False)"},
      {product, matmul, "l4 = sch.fuse(l1, l2)"},
      {product, matmul, "l4 = sch.fuse(l1, l3)", &not_nested},
      {product, matmul, "sch.reorder(l3, l1)"},
      {product, matmul, "sch.reorder(l1, l1)", &bad_argument},
      {elementwise_chain, chain, "l9 = sch.join(l1, l4)"},
      {elementwise_chain, chain, "l9 = sch.join(l1, l4, l7)"},
      {elementwise_chain, chain, "l9 = sch.join(l1, l7)", &not_nested},
      {elementwise_chain, chain, "l9 = sch.join(l4, l1)", &not_nested},
      {elementwise_chain, chain, "l9 = sch.merge(l1, l4)"},
      {elementwise_chain, chain, "l9 = sch.merge(l1, l5)", &not_nested},
      {first_half_used, two_halves, "l4 = sch.merge(l1, l3)"},
      {both_halves_used, two_halves, "l4 = sch.merge(l1, l3)", &dependence},
      {product, matmul, "l4, l5 = sch.loop_partition(l1, factors=[3, None])"},
      {product, matmul, "l4, l5 = sch.loop_partition(l1, factors=[9, None])", &bad_argument},
      {product, matmul, "l4, l5 = sch.peel(l1, 3)"},
      {product, matmul, "l4, l5 = sch.peel(l1, 0)", &bad_argument},
      {product, matmul, "l4, l5 = sch.strip_mine(l1, 3)"},
      {product, matmul, "l4, l5 = sch.strip_mine(l1, 0)", &bad_argument},
      {product, matmul, "l4 = sch.add_unit_loop(b0)"},
      {product, matmul, "l4 = sch.add_unit_loop(l2)"},
      {product, "b0 = sch.get_block(\"root\")\n", "l1 = sch.add_unit_loop(b0)", &bad_argument},
      {product, matmul, "sch.parallel(l1)"},
      {product, matmul, "sch.parallel(l3)", &dependence},
      {product, matmul, "sch.vectorize(l2)"},
      {product, matmul, "sch.vectorize(l3)", &dependence},
      {product, matmul, "sch.unroll(l3)"},
      {product, "b0 = sch.get_block(\"matmul\")\nl1, l2, l3 = sch.get_loops(b0)\nsch.parallel(l1)\n", "sch.unroll(l1)",
       &loop_kind},
      {product, matmul, "sch.bind(l1, \"blockIdx.x\")"},
      {product, matmul, "sch.bind(l1, \"somewhere\")", &bad_argument},
      {product, matmul, "sch.reorder_block_iter_var(b0, new_order=[2, 0, 1])"},
      {product, matmul, "sch.reorder_block_iter_var(b0, new_order=[2, 0, 0])", &bad_argument},
      {product, matmul, "b4 = sch.blockize(l2)"},
      {elementwise_chain,
       "b0 = sch.get_block(\"B\")\nb1 = sch.get_block(\"C\")\nl2, l3 = sch.get_loops(b1)\nsch.compute_at(b0, l2)\n",
       "b4 = sch.blockize(l2)", &not_nested},
      {elementwise_chain, chain, "sch.compute_at(b0, l4)"},
      {elementwise_chain, chain, "sch.compute_at(b6, l4)", &region},
      {elementwise_chain, chain, "sch.compute_at(b0, l4, index=0)"},
      {elementwise_chain, chain, "sch.compute_at(b0, l4, index=-2)"},
      {elementwise_chain, chain, "sch.compute_at(b0, l4, index=1)", &bad_argument},
      {elementwise_chain, chain, "sch.reverse_compute_at(b3, l1, index=1)"},
      {elementwise_chain, chain, "sch.reverse_compute_at(b3, l1, index=0)", &bad_argument},
      {elementwise_chain, chain, "sch.reverse_compute_at(b3, l1, index=-3)", &bad_argument},
      {elementwise_chain, chain, "sch.reverse_compute_at(b3, l1)"},
      {elementwise_chain, chain, "sch.reverse_compute_at(b0, l4)", &dependence},
      {elementwise_chain, chain, "sch.compute_inline(b3)"},
      {elementwise_chain, chain, "sch.compute_inline(b6)", &not_inlinable},
      {elementwise_chain, chain, "sch.reverse_compute_inline(b3)"},
      {product, matmul, "sch.reverse_compute_inline(b0)", &not_inlinable},
      {elementwise_chain, chain, "b9 = sch.cache_read(b3, 0, \"local\")"},
      {elementwise_chain, chain, "b9 = sch.cache_read(b3, 2, \"local\")", &bad_argument},
      {elementwise_chain, chain, "b9 = sch.cache_write(b3, 0, \"local\", consumer_blocks=[b6])"},
      {elementwise_chain, chain, "b9 = sch.cache_write(b3, 0, \"local\", consumer_blocks=[b0])", &not_nested},
      {elementwise_chain, chain, "b9 = sch.read_at(l4, b3, 0, \"local\")"},
      {elementwise_chain, chain, "b9 = sch.read_at(l1, b3, 0, \"local\")", &not_nested},
      {elementwise_chain, chain, "b9 = sch.write_at(l4, b3, 0, \"local\")"},
      {product, matmul, "b4 = sch.write_at(l3, b0, 0, \"local\")", &region},
      {in_place, update, "b2, b3 = sch.cache_inplace(b0, 0, \"local\")"},
      {product, matmul, "b4, b5 = sch.cache_inplace(b0, 0, \"local\")", &region},
      {product, matmul, "b4 = sch.reindex_cache_read(b0, 0, \"local\", index_map=lambda i, j, k: (k, i))"},
      {product, matmul, "b4 = sch.reindex_cache_read(b0, 0, \"local\", index_map=lambda i, j, k: (i,))", &bad_argument},
      {product, matmul, "b4 = sch.reindex_cache_write(b0, 0, \"local\", index_map=lambda i, j, k: (j, i))"},
      {product, matmul, "b4 = sch.reindex_cache_write(b0, 0, \"local\", index_map=lambda i, j, k: (j,))",
       &bad_argument},
      {elementwise_chain, chain, "sch.storage_align(b0, 0, axis=0, factor=8, offset=1)"},
      {elementwise_chain, chain, "sch.storage_align(b0, 0, axis=0, factor=0, offset=1)", &bad_argument},
      {elementwise_chain, chain, "sch.set_axis_separator(b0, [\"write\", 0], axis_separators=[1])"},
      {elementwise_chain, chain, "sch.set_axis_separator(b0, [\"write\", 0], axis_separators=[2])", &bad_argument},
      {sliding, windows, "b3, = sch.cache_index(b0, \"local\", cse_thresh=0)"},
      {sliding, windows, "b3, = sch.cache_index(b0, \"local\", cse_thresh=-1)", &bad_argument},
      {sliding,
       "b0 = sch.get_block(\"B\")\nb1 = sch.get_block(\"D\")\nl2, = sch.get_loops(b1)\nsch.compute_at(b0, l2)\n",
       "sch.rolling_buffer(b0, 0)"},
      {sliding, windows, "sch.rolling_buffer(b0, 0)", &not_nested},
      {sliding, windows, "sch.annotate_buffer_access(b1, 0, \"read\", gen_new_ranges=lambda i: (i, i + 3))"},
      {sliding, windows, "sch.annotate_buffer_access(b1, 0, \"read\", gen_new_ranges=lambda i: (i, i + 2))", &access},
      {product, "", "sch.enter_postproc()"},
      {product, matmul, "b4 = sch.prefetch(b0, 0, l1, l3)"},
      {product, matmul, "b4 = sch.prefetch(b0, 0, l3, l1)", &not_nested},
      {product, matmul, "sch.unsafe_hide_buffer_access(b0, \"read\", [0])"},
      {product, matmul, "sch.unsafe_hide_buffer_access(b0, \"read\", [2])", &bad_argument},
      {elementwise_chain, chain, "sch.unsafe_set_dtype(b0, 0, \"float64\")", nullptr, true},
      {elementwise_chain, chain, "sch.unsafe_set_dtype(b0, 0, \"number\")", &bad_argument},
      {elementwise_chain, chain, "sch.tensorize(l2, \"double\")"},
      {elementwise_chain, chain, "sch.tensorize(l5, \"double\")", &intrin_mismatch},
      {padded, padding, "b4 = sch.decompose_padding(b0, l1)"},
      {padded, padding, "b4 = sch.decompose_padding(b2, l3)", &bad_argument},
      {padded, padding, "b4, b5 = sch.split_padding(b0)"},
      {padded, padding, "b4, b5 = sch.split_padding(b2)", &bad_argument},
      {product, matmul, "sch.pad_einsum(b0, padding=[3, 1, 5])"},
      {product, matmul, "sch.pad_einsum(b0, padding=[3, 1])", &bad_argument},
      {product, matmul, "b4 = sch.reindex(b0, [\"read\", 0])"},
      {product, matmul, "b4 = sch.reindex(b0, [\"read\", 2])", &bad_argument},
      {elementwise_chain, chain, "sch.transform_layout(b0, [\"write\", 0], index_map=lambda i, j: (j, i))"},
      {elementwise_chain, chain, "sch.transform_layout(b0, [\"write\", 0], index_map=lambda i, j: (j,))",
       &bad_argument},
      {elementwise_chain, chain, "sch.transform_layout(b0, [\"write\", 0], index_map=lambda i, j: (i + j, j))"},
      {elementwise_chain, chain,
       "sch.transform_layout(b0, [\"write\", 0], index_map=lambda i, j: (i * i + j // 4, j % 4))", &bad_argument},
      {elementwise_chain, chain,
       "sch.transform_layout(b0, [\"write\", 0], index_map=lambda i, j: (i * i * 8 + j,), "
       "assume_injective_transform=True)"},
      {elementwise_chain, chain,
       "sch.transform_layout(b0, [\"write\", 0], index_map=lambda i, j: (i + j,), assume_injective_transform=True)",
       &bad_argument},
      {elementwise_chain, chain, "sch.transform_block_layout(b0, index_map=lambda i, j: (i * 8 + j,))"},
      {elementwise_chain, chain, "sch.transform_block_layout(b0, index_map=lambda i, j: (i + j,))", &bad_argument},
      {elementwise_chain, chain, "sch.set_scope(b0, 0, \"local\")"},
      {elementwise_chain, chain, "sch.set_scope(b6, 0, \"local\")", &bad_argument},
      {product, matmul, "b4 = sch.decompose_reduction(b0, l2)"},
      {product, "b0 = sch.get_block(\"matmul\")\nl1, l2, l3 = sch.get_loops(b0)\nsch.reorder(l3, l1, l2)\n",
       "b4 = sch.decompose_reduction(b0, l1)", &dependence},
      {layers, behind_product, "sch.fuse_reduction_epilogue(b0, b1)", nullptr, true},
      {layers, behind_product, "sch.fuse_reduction_epilogue(b1, b2)", &not_inlinable},
      {product, matmul, "b4 = sch.rfactor(l3, factor_axis=0)", nullptr, true},
      {product, matmul, "b4 = sch.rfactor(l1, factor_axis=0)", &dependence},
      {product, matmul, "sch.annotate(l1, \"key\", [1, 2])"},
      {product, matmul, "sch.annotate(l1, \"key\", None)", &bad_argument},
      {product, "b0 = sch.get_block(\"matmul\")\nsch.annotate(b0, \"key\", [1, 2])\n", "sch.unannotate(b0, \"key\")"},
      {product, matmul, "sch.unannotate(l1, \"key\")", &bad_argument},
  };
}

std::string step_of(const Row& row) {
  const std::string text = row.step;
  const size_t start = text.find("sch.") + 4;
  return text.substr(start, text.find('(') - start);
}

TEST(legality, of_every_instruction) {
  std::set<std::string> accepted, refused;
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.step);
    (row.refusal ? refused : accepted).insert(step_of(row));
    const Function program = row.program();
    Schedule schedule = Schedule::create(program, "main", {.context = doubling()}).value_or_throw();
    const Trace trace = parse_trace(std::string(row.before) + row.step).value_or_throw();
    const auto applied = trace.apply(schedule);
    if (row.refusal) {
      EXPECT_FALSE(applied.ok());
      if (applied.ok()) continue;
      EXPECT_EQ(applied.diagnostics()[0].code.name, row.refusal->name) << applied.diagnostics()[0].message;
      EXPECT_NE(applied.diagnostics()[0].message, "");
      continue;
    }
    EXPECT_TRUE(applied.ok()) << support::render(applied.diagnostics());
    if (!applied.ok()) continue;
    EXPECT_EQ(tir::testing::difference(program, schedule.mod().find_as<PrimFunc>("main"), 3, {}, doubling().get(),
                                       row.rounds ? 1e-4 : 0),
              "");
  }
  for (const InstructionKind& kind : instruction_kinds()) {
    const std::string name(kind.name);
    EXPECT_TRUE(accepted.count(name)) << name << " has no program where it must not refuse";
    // Of a mark there is nothing to refuse.
    if (name != "enter_postproc") EXPECT_TRUE(refused.count(name)) << name << " has no program where it must refuse";
  }
}

TEST(enter_postproc, marks_where_the_trace_leaves_the_search) {
  Schedule schedule = Schedule::create(product()).value_or_throw();
  schedule.enter_postproc();
  EXPECT_EQ(schedule.trace().as_python(), "sch.enter_postproc()\n");
}

TEST(set_axis_separator, gives_the_buffer_its_groups_wherever_it_is) {
  Schedule schedule = Schedule::create(elementwise_chain()).value_or_throw();
  const BlockRV first = schedule.get_block("B").value_or_throw(), second = schedule.get_block("C").value_or_throw();
  ASSERT_TRUE(schedule.set_axis_separator(first, {.writes = true}, {1}));
  const Ref<Block> writer = schedule.get(first).value_or_throw(), reader = schedule.get(second).value_or_throw();
  EXPECT_EQ(writer->writes[0]->buffer->axis_separators, (std::vector<int64_t>{1}));
  EXPECT_EQ(reader->reads[0]->buffer, writer->writes[0]->buffer);
}

}  // namespace
}  // namespace lathe::schedule
