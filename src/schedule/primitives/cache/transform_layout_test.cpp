// What lies where after transform_layout.
#include <gtest/gtest.h>

#include "schedule/analysis/tree.h"
#include "schedule/testing/programs.h"
#include "tir/interpret/interpret.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

using testing::Builder;

// T[i] = X[i] + X[i]; Y[i] = T[i].
Function doubled() {
  Builder b;
  const Buffer x = b.input("X", {int64(10)}, DType::int_(32)), t = b.inner("T", {int64(10)}, DType::int_(32)),
               y = b.output("Y", {int64(10)}, DType::int_(32));
  b.compute("double", t, [&](const std::vector<Expr>& i) { return load(x, i) + load(x, i); });
  b.compute("copy", y, [&](const std::vector<Expr>& i) { return load(t, i); });
  return b.build();
}

// The same of no elements.
Function doubled_none() {
  Builder b;
  const Buffer x = b.input("X", {int64(0)}), t = b.inner("T", {int64(0)}), y = b.output("Y", {int64(0)});
  b.compute("double", t, [&](const std::vector<Expr>& i) { return load(x, i) + load(x, i); });
  b.compute("copy", y, [&](const std::vector<Expr>& i) { return load(t, i); });
  return b.build();
}

// The elements of the only intermediate after a run, in its layout.
std::vector<double> memory_of_intermediate(const Function& function) {
  const BlockRealize& root = *root_of(*function);
  const Buffer inner = root.block->alloc_buffers.at(0);
  Buffer seen = buffer("seen", inner->shape, inner->dtype);
  std::vector<Expr> indices;
  std::vector<Var> loops;
  for (size_t d = 0; d < inner->shape.size(); ++d) indices.push_back(loops.emplace_back(var("o")));
  Stmt copy = make<BufferStore>(seen, load(inner, indices), indices, Expr());
  for (size_t d = loops.size(); d-- > 0;) copy = make<For>(loops[d], int64(0), inner->shape[d], ForKind::serial, copy);
  const Ref<Block> block = with(*root.block, [&](Block& b) { b.body = seq({b.body, copy}); });
  std::vector<Buffer> parameters;
  for (const auto& [param, buffer] : function->buffer_map) parameters.push_back(buffer);
  parameters.push_back(seen);
  const Function watched = prim_func(parameters, make<BlockRealize>(std::vector<Expr>{}, boolean(true), block));
  std::vector<tir::TensorBuffer> arguments = tir::testing::random_arguments(watched, 1);
  EXPECT_TRUE(tir::interpret(watched, arguments, {}));
  std::vector<double> result;
  for (int64_t i = 0; i < arguments[2].elements(); ++i)
    result.push_back(arguments[2].is_written(i) ? arguments[2].float_at(i) : -1);
  return result;
}

TEST(transform_layout, fills_the_gaps_with_the_padding) {
  Schedule sch = Schedule::create(doubled()).value_or_throw();
  const IndexMap map = parse_index_map("lambda i: (i % 4, i // 4)").value_or_throw();
  const BlockRV block = sch.get_block("double").value_or_throw();
  ASSERT_TRUE(sch.transform_layout(block, {.writes = true}, map, ir::Value(int64_t{-7})));
  EXPECT_EQ(tir::testing::difference(doubled(), sch.mod().find_as<PrimFunc>("main"), 1), "");
  const std::vector<double> memory = memory_of_intermediate(sch.mod().find_as<PrimFunc>("main"));
  ASSERT_EQ(memory.size(), 12u);
  for (size_t at = 0; at < memory.size(); ++at) EXPECT_EQ(memory[at] == -7, (at % 3) * 4 + at / 3 >= 10) << at;
}

TEST(transform_layout, adds_nothing_where_there_are_no_gaps) {
  Schedule sch = Schedule::create(doubled()).value_or_throw();
  const IndexMap map = parse_index_map("lambda i: (i // 5, i % 5)").value_or_throw();
  const BlockRV block = sch.get_block("double").value_or_throw();
  ASSERT_TRUE(sch.transform_layout(block, {.writes = true}, map, ir::Value(int64_t{-7})));
  EXPECT_FALSE(sch.get_block("T_pad"));
}

TEST(transform_layout, leaves_nothing_of_an_empty_buffer) {
  Schedule sch = Schedule::create(doubled_none()).value_or_throw();
  const IndexMap map = parse_index_map("lambda i: (i * 2,)").value_or_throw();
  ASSERT_TRUE(sch.transform_layout(sch.get_block("double").value_or_throw(), {.writes = true}, map));
  const Function after = sch.mod().find_as<PrimFunc>("main");
  EXPECT_EQ(as_int(root_of(*after)->block->alloc_buffers.at(0)->shape[0]), 0);
}

}  // namespace
}  // namespace lathe::schedule
