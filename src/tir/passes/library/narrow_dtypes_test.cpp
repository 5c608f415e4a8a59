#include "tir/testing/programs.h"
#include "tir/testing/random_program.h"
#include "tir/testing/run.h"
#include "tir/verify.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(narrow_dtypes, makes_of_programs_what_its_text_expects) { expect_text(narrow_dtypes, __FILE__); }

// Loops whose variable has so many bits.
int loops_of(const Function& f, int bits) {
  int n = 0;
  post_order(f->body, [&](const NodeRef& node) {
    if (const auto* loop = node.as<For>()) n += loop->loop_var->dtype.bits == bits;
  });
  return n;
}

TEST(narrow_dtypes, keeps_what_random_programs_compute) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Function f = run(random_program(seed), {lower_init, convert_blocks});
    for (const Function& g : {run(f, {narrow_dtypes}), run(f, {flatten_buffers, narrow_dtypes})}) {
      EXPECT_EQ(difference(f, g, seed), "") << seed;
      EXPECT_TRUE(verify(g, {}).empty()) << seed << support::render(verify(g, {}));
      EXPECT_EQ(loops_of(g, 64), 0) << seed;
      // The rest of the pipeline takes it.
      const Function kernel = run(g, {flatten_buffers, join_axis_groups, simplify, vectorize_loops, unroll_loops});
      EXPECT_EQ(difference(f, kernel, seed), "") << seed;
    }
  }
}

// The last element, at 2^31: in 32 bits its index would be negative.
TEST(narrow_dtypes, keeps_an_index_that_reaches_too_far) {
  const auto loops_over = [](int64_t rows, int64_t columns) {
    const Buffer a = buffer("A", {int64(rows * columns + 1)}, DType::int_(8));
    const Var i = var("i");
    const Stmt store =
        make<BufferStore>(a, cast(DType::int_(8), ge(i * columns, int64(0))), std::vector<Expr>{i * columns});
    return prim_func({a}, make<For>(i, int64(rows), int64(1), ForKind::serial, store));
  };
  const int64_t half = int64_t{1} << 16;
  const auto index_bits = [](const Function& f) {
    return f->body.as<For>()->body.as<BufferStore>()->indices[0]->dtype.bits;
  };
  EXPECT_EQ(index_bits(run(loops_over(half, half / 2), {narrow_dtypes})), 64);
  EXPECT_EQ(index_bits(run(loops_over(half - 1, half / 2), {narrow_dtypes})), 32);
}

TEST(narrow_dtypes, refuses_blocks) {
  EXPECT_EQ(refusal(padded_stencil(7, ForKind::serial), narrow_dtypes), "tir-illegal-after-stage");
}

}  // namespace
}  // namespace lathe::tir
