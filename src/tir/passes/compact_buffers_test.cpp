#include "tir/testing/differential.h"
#include "tir/testing/programs.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

// for io: T = 2 * X on a tile with a halo; B = T[j - halo] + T[j] on the tile. `carried`: T also reads its neighbour.
Function tiles(int64_t n, int64_t halo, bool carried) {
  const DType f32 = DType::float32();
  const Buffer x = buffer("X", {int64(n)}, f32), t = buffer("T", {int64(n)}, f32), b = buffer("B", {int64(n)}, f32);
  const Var io = var("io"), p = var("p"), c = var("c"), vp = var("vp"), vc = var("vc");
  const Expr at = io * 4 + p - halo, column = io * 4 + c;
  Expr value = load(x, {vp}) * constant(f32, 2);
  if (carried) value = value + if_then_else(ge(vp, int64(4)), load(t, {vp - 4}), constant(f32, 0));
  const Stmt produce = block("T", {iter(vp, int64(n))}, {at}, make<BufferStore>(t, value, std::vector<Expr>{vp}), {},
                             logical_and(ge(at, int64(0)), lt(at, int64(n))));
  const Expr left = if_then_else(ge(vc, int64(halo)), load(t, {vc - halo}), constant(f32, 0));
  const Stmt consume =
      block("B", {iter(vc, int64(n))}, {column}, make<BufferStore>(b, left + load(t, {vc}), std::vector<Expr>{vc}), {},
            lt(column, int64(n)));
  const Stmt body = seq({loop(p, int64(4 + halo), produce), loop(c, int64(4), consume)});
  return prim_func({x, b}, root_block(loop(io, int64((n + 3) / 4), body), {t}));
}
std::vector<int64_t> sizes_of_allocations(const Function& f) {
  std::vector<int64_t> sizes;
  post_order(f->body, [&](const NodeRef& n) {
    if (const auto* block = n.as<Block>())
      for (const Buffer& buffer : block->alloc_buffers) sizes.push_back(as_int(buffer->shape[0]).value_or(-1));
  });
  return sizes;
}

TEST(compact_buffers, makes_of_programs_what_its_text_expects) { expect_text(compact_buffers, __FILE__); }

TEST(compact_buffers, shrinks_a_producer_to_the_tile_it_is_computed_for) {
  for (const int64_t halo : {0, 1, 3}) {
    const Function f = tiles(18, halo, false), g = run(f, {compact_buffers});
    EXPECT_EQ(sizes_of_allocations(g), std::vector<int64_t>{4 + halo});
    EXPECT_EQ(difference(f, g, 3), "");
    EXPECT_EQ(difference(f, run(f, {compact_buffers, convert_blocks, flatten_buffers}), 3), "");
  }
}

TEST(compact_buffers, keeps_a_buffer_whose_values_cross_iterations) {
  const Function f = tiles(18, 0, true), g = run(f, {compact_buffers});
  EXPECT_EQ(sizes_of_allocations(g), std::vector<int64_t>{18});
  EXPECT_EQ(difference(f, g, 3), "");
}

// The loops around the block that allocates T.
size_t depth_of_allocation(const Stmt& s) {
  if (const auto* loop = s.as<For>()) return 1 + depth_of_allocation(loop->body);
  const auto* realize = s.as<BlockRealize>();
  return realize && realize->block->alloc_buffers.empty() ? depth_of_allocation(realize->block->body) : 0;
}

TEST(place_allocations, moves_a_buffer_and_leaves_its_size) {
  for (const int64_t halo : {0, 1, 3}) {
    const Function f = tiles(18, halo, false), g = run(f, {place_allocations});
    EXPECT_EQ(sizes_of_allocations(g), std::vector<int64_t>{18});
    EXPECT_EQ(depth_of_allocation(f->body), 0u);
    EXPECT_EQ(depth_of_allocation(g->body), 1u) << "inside of the loop over tiles";
    EXPECT_EQ(difference(f, g, 3), "");
    EXPECT_EQ(difference(f, run(f, {place_allocations, compact_buffers, convert_blocks, flatten_buffers}), 3), "");
  }
}

TEST(place_allocations, keeps_a_buffer_whose_values_cross_iterations) {
  const Function f = tiles(18, 0, true), g = run(f, {place_allocations});
  EXPECT_EQ(sizes_of_allocations(g), std::vector<int64_t>{18});
  EXPECT_EQ(difference(f, g, 3), "");
}

}  // namespace
}  // namespace lathe::tir
