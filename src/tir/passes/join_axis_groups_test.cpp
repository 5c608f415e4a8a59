#include "tir/testing/programs.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(join_axis_groups, makes_of_programs_what_its_text_expects) { expect_text(join_axis_groups, __FILE__); }

TEST(join_axis_groups, leaves_the_flat_index_that_no_groups_would_have) {
  const auto copy = [](const std::vector<int64_t>& separators) {
    Buffer a = buffer("A", {int64(2), int64(3), int64(5)}, DType::float32());
    a = with(*a, [&](BufferNode& node) { node.axis_separators = separators; });
    const Buffer b = buffer("B", {int64(2), int64(3), int64(5)}, DType::float32());
    const Var i = var("i"), j = var("j"), k = var("k");
    const Stmt store = make<BufferStore>(b, load(a, {i, j, k}), std::vector<Expr>{i, j, k});
    return prim_func({a, b}, loop(i, int64(2), loop(j, int64(3), loop(k, int64(5), store))));
  };
  const Function grouped = copy({1, 2});
  const Function g = run(grouped, {flatten_buffers, join_axis_groups});
  EXPECT_EQ(difference(grouped, g, 3), "");
  for (const auto& [handle, buffer] : g->buffer_map) EXPECT_EQ(buffer->shape.size(), 1u);
  EXPECT_EQ(run(grouped, {flatten_buffers})->buffer_map[0].second->shape.size(), 3u);
  EXPECT_EQ(run(copy({2}), {flatten_buffers})->buffer_map[0].second->shape.size(), 2u);
}

}  // namespace
}  // namespace lathe::tir
