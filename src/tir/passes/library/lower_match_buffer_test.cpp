#include "tir/testing/programs.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(lower_match_buffer, makes_of_programs_what_its_text_expects) { expect_text(lower_match_buffer, __FILE__); }

// A view of `corner` .. `corner` + extents of `source`.
MatchBufferRegion view_of(const char* name, const Buffer& source, std::vector<Expr> corner,
                          const std::vector<int64_t>& extents) {
  std::vector<Range> region;
  std::vector<Expr> shape;
  for (size_t d = 0; d < corner.size(); ++d) {
    region.push_back({corner[d], int64(extents[d])});
    shape.push_back(int64(extents[d]));
  }
  return make<MatchBufferRegionNode>(buffer(name, shape, source->dtype),
                                     make<BufferRegionNode>(source, std::move(region)));
}

Stmt block_with_view(const char* name, const MatchBufferRegion& view, const Buffer& written, Stmt body) {
  const Ref<Block> made =
      make<Block>(std::vector<IterVar>{}, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{view},
                  std::vector<BufferRegion>{view->source}, std::vector<BufferRegion>{region_of(written)},
                  std::string(name), Stmt{}, std::move(body));
  return make<BlockRealize>(std::vector<Expr>{}, boolean(true), made);
}

// B = A[3:5, 4:6], by a view of a view.
TEST(lower_match_buffer, follows_a_view_of_a_view) {
  const DType f32 = DType::float32();
  const Buffer a = buffer("A", {int64(6), int64(8)}, f32), b = buffer("B", {int64(2), int64(2)}, f32);
  const Var i = var("i"), j = var("j");
  const MatchBufferRegion outer = view_of("outer", a, {int64(2), int64(1)}, {4, 6});
  const MatchBufferRegion inner = view_of("inner", outer->buffer, {int64(1), int64(3)}, {2, 2});
  const Stmt copy =
      loop(i, int64(2), loop(j, int64(2), make<BufferStore>(b, load(inner->buffer, {i, j}), std::vector<Expr>{i, j})));
  const Function f =
      prim_func({a, b}, root_block(block_with_view("around", outer, b, block_with_view("copy", inner, b, copy))));
  const Function g = run(f, {lower_match_buffer});
  EXPECT_EQ(difference(f, g, 5), "");
  EXPECT_EQ(count<MatchBufferRegionNode>(g), 0);
  EXPECT_EQ(difference(f, run(f, {convert_blocks, flatten_buffers}), 5), "");
  post_order(g->body, [&](const NodeRef& n) {
    if (const auto* block = n.as<Block>(); block && block->name == "copy") {
      ASSERT_EQ(block->reads.size(), 1u);
      EXPECT_EQ(block->reads[0]->buffer, a);
      EXPECT_TRUE(is_int(block->reads[0]->region[0].min, 3) && is_int(block->reads[0]->region[1].min, 4));
    }
  });
}

TEST(lower_match_buffer, refuses_a_view_of_more_dimensions_than_its_source) {
  const Buffer a = buffer("A", {int64(4)}, DType::float32()), b = buffer("B", {int64(4)}, DType::float32());
  const Buffer wide = buffer("wide", {int64(2), int64(2)}, DType::float32());
  const MatchBufferRegion view = make<MatchBufferRegionNode>(wide, region_of(a));
  const Stmt body = make<BufferStore>(b, load(wide, {int64(0), int64(0)}), std::vector<Expr>{int64(0)});
  const Function f = prim_func({a, b}, root_block(block_with_view("copy", view, b, body)));
  EXPECT_EQ(refusal(f, lower_match_buffer), "tir-match-buffer-rank");
}

}  // namespace
}  // namespace lathe::tir
