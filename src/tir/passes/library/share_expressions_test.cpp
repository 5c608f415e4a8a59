#include "tir/testing/programs.h"
#include "tir/testing/random_program.h"
#include "tir/testing/run.h"
#include "tir/verify.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(share_expressions, makes_of_programs_what_its_text_expects) { expect_text(share_expressions, __FILE__); }

TEST(share_expressions, keeps_what_random_programs_compute) {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    const Function blocks = random_program(seed), flat = run(blocks, {lower_init, convert_blocks, flatten_buffers});
    for (const Function& f : {blocks, flat, run(flat, {vectorize_loops, unroll_loops})}) {
      const Function g = run(f, {share_expressions});
      EXPECT_EQ(difference(f, g, seed), "") << seed;
      EXPECT_TRUE(verify(g, {}).empty()) << seed << support::render(verify(g, {}));
    }
  }
}

TEST(share_expressions, finds_terms_that_only_arithmetic_shows_equal) {
  const Buffer b = buffer("B", {int64(64)}, DType::int64());
  const Var n = var("n"), m = var("m");
  const Expr one = make<Mul>(n, make<Add>(m, int64(2)));
  const Expr other = make<Add>(make<Mul>(n, m), make<Mul>(n, int64(2)));
  const Function f = prim_func({b},
                               seq({make<BufferStore>(b, one, std::vector<Expr>{int64(0)}),
                                    make<BufferStore>(b, other, std::vector<Expr>{int64(1)})}),
                               {n, m});
  EXPECT_EQ(count<LetStmt>(run(f, {share_expressions})), 0);
  PassContext context;
  context.config.set("equivalent_terms", true);
  const Function g = run(f, {share_expressions}, context);
  EXPECT_EQ(count<LetStmt>(g), 1);
  EXPECT_EQ(difference(f, g, 3, {{"n", 5}, {"m", 3}}), "");
}

// Addresses, hints and vectors of indices stay what they are.
TEST(share_expressions, names_no_address_and_no_shape_of_a_vector) {
  const Buffer a = buffer("A", {int64(64)}, DType::float32()), b = buffer("B", {int64(64)}, DType::float32());
  const Expr lanes = make<Ramp>(int64(8), int64(1), 8);
  const Stmt hint = make<Evaluate>(call(DType::void_(), intrinsic::prefetch, {load(a, {int64(3)}), ir::int32(1)}));
  const Stmt copy = make<BufferStore>(b, load(a, {lanes}), std::vector<Expr>{lanes});
  const Function f = prim_func({a, b}, seq({hint, hint, copy}));
  EXPECT_TRUE(run(f, {share_expressions}).same_as(f));
}

}  // namespace
}  // namespace lathe::tir
