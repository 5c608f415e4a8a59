// Blocks that become intrinsics: what matches, what does not and where, and that the meaning stays.
#include <gtest/gtest.h>

#include "schedule/testing/programs.h"
#include "tir/passes/passes.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

Function function_of(const std::string& parameters, const std::string& body) {
  return testing::from_text("@T.prim_func\ndef main(" + parameters + "):\n" + body);
}

// C += A @ B of 4 by 3 by 5, as loops; the implementation goes by rows, through addresses too where `strides` are
// given.
const char* const tile_parameters =
    "A: T.Buffer((4, 5), \"float32\"), B: T.Buffer((5, 3), \"float32\"), C: T.Buffer((4, 3), \"float32\")";
const char* const tile_loops =
    "    for i, j, k in T.grid(4, 3, 5):\n"
    "        with T.block(\"update\"):\n"
    "            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])\n"
    "            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]\n";
const char* const tile_rows =
    "    for i in range(4):\n"
    "        with T.block(\"row\"):\n"
    "            vi = T.axis.spatial(4, i)\n"
    "            T.reads(A[vi, 0:5], B[0:5, 0:3], C[vi, 0:3])\n"
    "            T.writes(C[vi, 0:3])\n"
    "            for k in range(5):\n"
    "                C[vi, 0:3] = C[vi, 0:3] + T.broadcast(A[vi, k], 3) * B[k, 0:3]\n";

tir::TensorIntrin tile() { return {function_of(tile_parameters, tile_loops), function_of(tile_parameters, tile_rows)}; }

std::shared_ptr<Context> context_with(const std::string& name, const tir::TensorIntrin& intrin) {
  auto context = std::make_shared<Context>();
  EXPECT_TRUE(context->add(name, intrin).ok());
  return context;
}

struct TiledProduct {
  Function original = testing::matmul(int64(8), int64(6), int64(10));
  std::shared_ptr<Context> context;
  Schedule sch;
  std::vector<LoopRV> loops;

  explicit TiledProduct(const tir::TensorIntrin& intrin, bool decompose = true)
      : context(context_with("tile", intrin)),
        sch(Schedule::create(original, "main", {.context = context}).value_or_throw()) {
    const BlockRV block = sch.get_block("matmul").value_or_throw();
    const auto l = sch.get_loops(block).value_or_throw();
    const auto i = sch.split(l[0], {Factor(), int64_t{4}}).value_or_throw();
    const auto j = sch.split(l[1], {Factor(), int64_t{3}}).value_or_throw();
    const auto k = sch.split(l[2], {Factor(), int64_t{5}}).value_or_throw();
    loops = {i[0], j[0], k[0], i[1], j[1], k[1]};
    EXPECT_TRUE(sch.reorder(loops));
    if (decompose) EXPECT_TRUE(sch.decompose_reduction(block, k[0]));
  }
  Function result() const { return sch.mod().find_as<PrimFunc>("main"); }
  std::string difference() const { return tir::testing::difference(original, result(), 3, {}, context.get()); }
};

template <class T>
std::string answer(const Result<T>& result) {
  return result.ok() ? "accepted" : result.diagnostics()[0].message;
}

TEST(tensorize, puts_the_implementation_where_the_description_was) {
  TiledProduct tiled(tile());
  ASSERT_EQ(answer(tiled.sch.tensorize(tiled.loops[3], "tile")), "accepted");
  const Ref<Block> block = tiled.sch.get(tiled.sch.get_block("matmul_update_o").value_or_throw()).value_or_throw();
  EXPECT_EQ(*tir::tensor_intrin_of(*block), "tile");
  ASSERT_EQ(block->match_buffers.size(), 3u);
  EXPECT_EQ(block->reads.size(), 3u);
  EXPECT_EQ(tiled.difference(), "");
  EXPECT_NE(tir::testing::difference(tiled.original, tiled.result(), 3).find("which is not registered"),
            std::string::npos)
      << "without the context nobody knows what the block means";
}

TEST(tensorize, lowers_to_what_the_description_says) {
  TiledProduct tiled(tile());
  ASSERT_TRUE(tiled.sch.tensorize(tiled.loops[3], "tile"));
  ir::IRModule module = tiled.sch.mod();
  for (const auto pass : {tir::lower_init, tir::convert_blocks, tir::flatten_buffers})
    module = pass(std::move(module), {}).value_or_throw();
  // Nothing is left of the description: this runs the implementation.
  EXPECT_EQ(tir::testing::difference(tiled.original, module.find_as<PrimFunc>("main"), 3), "");
}

TEST(tensorize, replays_from_its_printed_trace) {
  TiledProduct tiled(tile());
  ASSERT_TRUE(tiled.sch.tensorize(tiled.loops[3], "tile"));
  const std::string text = tiled.sch.trace().as_python();
  EXPECT_NE(text.find("sch.tensorize(l"), std::string::npos) << text;
  Schedule again = Schedule::create(tiled.original, "main", {.context = tiled.context}).value_or_throw();
  ASSERT_TRUE(parse_trace(text).value_or_throw().apply(again).ok());
  EXPECT_EQ(ir::first_difference(again.mod(), tiled.sch.mod()), std::nullopt);
}

TEST(tensorize, leaves_an_init_that_can_be_taken_out_afterwards) {
  TiledProduct tiled(tile(), false);
  ASSERT_EQ(answer(tiled.sch.tensorize(tiled.loops[3], "tile")), "accepted");
  const BlockRV block = tiled.sch.get_block("matmul_o").value_or_throw();
  ASSERT_EQ(answer(tiled.sch.decompose_reduction(block, tiled.loops[2])), "accepted");
  const Ref<Block> update = tiled.sch.get(tiled.sch.get_block("matmul_o_update").value_or_throw()).value_or_throw();
  EXPECT_FALSE(update->init);
  EXPECT_EQ(*tir::tensor_intrin_of(*update), "tile");
  EXPECT_EQ(update->reads.size(), 3u);
  EXPECT_EQ(tiled.difference(), "");
  ir::IRModule module = tiled.sch.mod();
  for (const auto pass : {tir::lower_init, tir::convert_blocks, tir::flatten_buffers})
    module = pass(std::move(module), {}).value_or_throw();
  EXPECT_EQ(tir::testing::difference(tiled.original, module.find_as<PrimFunc>("main"), 3), "");
}

TEST(tensorize, keeps_an_init_that_the_block_has_beside_its_update) {
  TiledProduct tiled(tile(), false);
  const BlockRV outer = tiled.sch.blockize(tiled.loops[3]).value_or_throw();
  ASSERT_EQ(answer(tiled.sch.tensorize(outer, "tile")), "accepted");
  EXPECT_TRUE(tiled.sch.get(outer).value_or_throw()->init);
  EXPECT_EQ(tiled.difference(), "");
}

TEST(tensorize, takes_operands_in_either_order_and_fills_in_open_sizes) {
  const char* const parameters = "a: T.handle, b: T.handle, C: T.Buffer((4, 3), \"float32\")";
  const std::string head = "    K = T.int64()\n    A = T.match_buffer(a, (4, K))\n    B = T.match_buffer(b, (K, 3))\n";
  const std::string loops =
      "    for i, j, k in T.grid(4, 3, K):\n"
      "        with T.block(\"update\"):\n"
      "            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])\n"
      "            C[vi, vj] = B[vk, vj] * A[vi, vk] + C[vi, vj]\n";
  const Function f = function_of(parameters, head + loops);
  TiledProduct tiled({f, f});
  ASSERT_EQ(answer(tiled.sch.tensorize(tiled.loops[3], "tile")), "accepted");
  EXPECT_EQ(tiled.difference(), "");
}

TEST(tensorize, works_on_a_slice_of_a_buffer_with_more_dimensions) {
  testing::Builder b;
  const Buffer x = b.input("X", {int64(3), int64(4), int64(5)}), y = b.output("Y", {int64(3), int64(4), int64(5)});
  b.compute("copy", y, [&](const std::vector<Expr>& i) { return load(x, i); });
  const char* const parameters = "A: T.Buffer((5,), \"float32\"), B: T.Buffer((5,), \"float32\")";
  const Function f = function_of(parameters,
                                 "    for i in range(5):\n        with T.block(\"copy\"):\n"
                                 "            vi = T.axis.spatial(5, i)\n            B[vi] = A[vi]\n");
  const auto context = context_with("copy5", {f, f});
  const Function original = b.build();
  Schedule sch = Schedule::create(original, "main", {.context = context}).value_or_throw();
  const auto loops = sch.get_loops(sch.get_block("copy").value_or_throw()).value_or_throw();
  ASSERT_EQ(answer(sch.tensorize(loops[2], "copy5")), "accepted");
  EXPECT_EQ(tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3, {}, context.get()), "");
  // The other loops still show themselves to be independent.
  EXPECT_EQ(answer(sch.reorder({loops[1], loops[0]})), "accepted");
  EXPECT_EQ(answer(sch.parallel(loops[0])), "accepted");
}

// What tensorize says of the tiled product when the intrinsic's loops are these.
std::string refusal(const std::string& loops, const std::string& parameters = tile_parameters) {
  const Function f = function_of(parameters, loops);
  TiledProduct tiled({f, f});
  return answer(tiled.sch.tensorize(tiled.loops[3], "tile"));
}

TEST(tensorize, says_where_the_description_differs) {
  const auto nest = [](const std::string& grid, const std::string& store) {
    return "    for i, j, k in T.grid(" + grid +
           "):\n        with T.block(\"update\"):\n"
           "            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])\n            " +
           store + "\n";
  };
  const auto why = [&](const std::string& loops) {
    const std::string text = refusal(loops);
    const size_t colon = text.find("describes: ");
    return colon == std::string::npos ? text : text.substr(colon + 11);
  };
  EXPECT_EQ(why(nest("4, 3, 4", "C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]")), "loops over other ranges");
  EXPECT_EQ(why(nest("4, 3, 5", "C[vi, vj] = C[vi, vj] - A[vi, vk] * B[vk, vj]")), "other operations");
  EXPECT_EQ(why(nest("4, 3, 5", "C[vi, vj] = C[vi, vj] + A[vi, vk] * T.float32(2)")), "other operations");
  EXPECT_EQ(why("    with T.block(\"one\"):\n        C[0, 0] = A[0, 0] * B[0, 0]\n"), "another kind of statement");
  EXPECT_EQ(why(nest("4, 3, 5", "C[vi, vj] = A[vi, vk] * B[vk, vj]")), "other operations");
  EXPECT_EQ(why("    for i, j, k in T.grid(4, 3, 5):\n        with T.block(\"update\"):\n"
                "            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])\n            with T.init():\n"
                "                C[vi, vj] = T.float32(0)\n"
                "            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]\n"),
            "the description's block has an init, the program's has none");
}

TEST(tensorize, refuses_another_type_scope_or_layout) {
  EXPECT_NE(refusal(tile_loops,
                    "A: T.Buffer((4, 5), \"float32\", scope=\"local\"), B: T.Buffer((5, 3), \"float32\"), "
                    "C: T.Buffer((4, 3), \"float32\")")
                .find("'A' is in scope 'local', 'A' in scope 'global'"),
            std::string::npos);
  const Function loops = function_of(tile_parameters, tile_loops);
  const auto with_implementation = [&](const std::string& parameters, const std::string& head) {
    TiledProduct tiled({loops, function_of(parameters, head + tile_loops)});
    return answer(tiled.sch.tensorize(tiled.loops[3], "tile"));
  };
  const std::string others = ", B: T.Buffer((5, 3), \"float32\"), C: T.Buffer((4, 3), \"float32\")";
  EXPECT_EQ(with_implementation("A: T.Buffer((4, 5), \"float32\", strides=[1, 4])" + others, ""),
            "cannot use intrinsic 'tile': elements of 'A' along dimension 0 are not 1 apart in 'A'");
  EXPECT_EQ(with_implementation("A: T.Buffer((4, 5), \"float32\", offset_factor=4)" + others, ""),
            "cannot use intrinsic 'tile': 'A' need not begin at a multiple of 4 elements in 'A'");
  EXPECT_EQ(with_implementation("A: T.Buffer((4, 5), \"float32\", strides=[10, 1], offset_factor=5)" + others, ""),
            "accepted");
}

TEST(tensorize, refuses_by_a_code_of_its_own) {
  TiledProduct tiled(tile(), false);
  const auto refused = tiled.sch.tensorize(tiled.loops[0], "tile");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics()[0].code.name, "schedule-intrin-mismatch");
  EXPECT_EQ(refused.diagnostics()[0].notes.size(), 2u);
}

TEST(tensorize, refuses_what_is_not_registered) {
  TiledProduct tiled(tile());
  const auto refused = tiled.sch.tensorize(tiled.loops[3], "tiles");
  EXPECT_EQ(answer(refused), "no intrinsic is registered under the name 'tiles'");
  EXPECT_EQ(refused.diagnostics()[0].notes.at(0).message.substr(0, 10), "there are ");
}

TEST(tensorize, refuses_one_buffer_in_two_places_when_it_is_written) {
  testing::Builder b;
  const Buffer x = b.input("X", {int64(5)}), y = b.output("Y", {int64(5)});
  b.compute("first", y, [&](const std::vector<Expr>& i) { return load(x, i); });
  b.compute("again", y, [&](const std::vector<Expr>& i) { return load(y, i) + load(y, i); });
  const Function f = function_of("A: T.Buffer((5,), \"float32\"), B: T.Buffer((5,), \"float32\")",
                                 "    for i in range(5):\n        with T.block(\"add\"):\n"
                                 "            vi = T.axis.spatial(5, i)\n            B[vi] = A[vi] + A[vi]\n");
  Schedule sch = Schedule::create(b.build(), "main", {.context = context_with("add", {f, f})}).value_or_throw();
  const auto loops = sch.get_loops(sch.get_block("again").value_or_throw()).value_or_throw();
  EXPECT_EQ(answer(sch.tensorize(loops[0], "add")),
            "cannot use intrinsic 'add': 'Y' would be two of its buffers, one of them written");
}

}  // namespace
}  // namespace lathe::schedule
