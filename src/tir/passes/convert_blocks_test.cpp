#include "tir/testing/differential.h"
#include "tir/testing/programs.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(convert_blocks, makes_of_programs_what_its_text_expects) { expect_text(convert_blocks, __FILE__); }

TEST(convert_blocks, makes_predicates_ifs_and_buffers_allocations) {
  const Function f = matmul(int64(2), int64(5), int64(3), 4, ForKind::serial), g = run(f, {lower_init, convert_blocks});
  EXPECT_EQ(count<Block>(g) + count<BlockRealize>(g), 0);
  EXPECT_EQ(count<IfThenElse>(g), 2);
  EXPECT_EQ(difference(f, g, 3), "");
  EXPECT_EQ(count<Allocate>(run(padded_stencil(7, ForKind::serial), {convert_blocks})), 1);
}

// B[i, j] = A[2, i, j], through an alias of the slice with symbolic strides.
TEST(convert_blocks, follows_matched_regions) {
  const DType f32 = DType::float32();
  const Buffer a = buffer("A", {int64(3), int64(4), int64(5)}, f32), b = buffer("B", {int64(4), int64(5)}, f32);
  const Var stride = var("s"), offset = var("o"), i = var("i"), j = var("j");
  const Buffer slice =
      make<BufferNode>("slice", var("slice", DType::handle()), f32, std::vector<Expr>{int64(4), int64(5)},
                       std::vector<Expr>{stride, int64(1)}, offset);
  const BufferRegion source =
      make<BufferRegionNode>(a, std::vector<Range>{{int64(2), int64(1)}, {int64(0), int64(4)}, {int64(0), int64(5)}});
  const Stmt copy =
      loop(i, int64(4), loop(j, int64(5), make<BufferStore>(b, load(slice, {i, j}), std::vector<Expr>{i, j})));
  const Ref<Block> block = make<Block>(std::vector<IterVar>{}, std::vector<Buffer>{},
                                       std::vector<MatchBufferRegion>{make<MatchBufferRegionNode>(slice, source)},
                                       std::vector<BufferRegion>{source}, std::vector<BufferRegion>{region_of(b)},
                                       std::string("copy"), Stmt{}, copy);
  const Function f = prim_func({a, b}, root_block(make<BlockRealize>(std::vector<Expr>{}, boolean(true), block)));
  EXPECT_EQ(difference(f, run(f, {convert_blocks, flatten_buffers}), 5), "");
}

}  // namespace
}  // namespace lathe::tir
