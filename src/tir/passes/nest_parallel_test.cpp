#include "tir/testing/differential.h"
#include "tir/testing/programs.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(nest_parallel, makes_of_programs_what_its_text_expects) { expect_text(nest_parallel, __FILE__); }

TEST(nest_parallel, runs_the_inner_loop_serially) {
  const Buffer b = buffer("B", {int64(3), int64(4)}, DType::int64());
  const Var i = var("i"), j = var("j");
  const Stmt store = make<BufferStore>(b, i * 10 + j, std::vector<Expr>{i, j});
  const Function f = prim_func({b}, loop(i, int64(3), loop(j, int64(4), store, ForKind::parallel), ForKind::parallel));
  const Function g = run(f, {nest_parallel});
  EXPECT_EQ(g->body.as<For>()->kind, ForKind::parallel);
  EXPECT_EQ(g->body.as<For>()->body.as<For>()->kind, ForKind::serial);
  EXPECT_EQ(difference(f, g, 3), "");
}

}  // namespace
}  // namespace lathe::tir
