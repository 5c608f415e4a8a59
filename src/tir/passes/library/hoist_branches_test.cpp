#include "tir/testing/programs.h"
#include "tir/testing/random_program.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(hoist_branches, makes_of_programs_what_its_text_expects) { expect_text(hoist_branches, __FILE__); }

TEST(hoist_branches, keeps_what_random_programs_compute) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Function f = run(random_program(seed), {lower_init, convert_blocks});
    EXPECT_EQ(difference(f, run(f, {hoist_branches}), seed), "") << seed;
  }
}

TEST(hoist_branches, says_why_a_branch_stays) {
  const Buffer flag = buffer("flag", {int64(1)}, DType::int64()), b = buffer("B", {int64(4)}, DType::int64());
  const Var i = var("i"), n = size_var("n");
  const auto asked = [&](const Expr& extent, const Buffer& written) {
    const Stmt store = make<BufferStore>(written, i, std::vector<Expr>{int64(0)});
    const Stmt branch = make<IfThenElse>(ge(load(flag, {int64(0)}), int64(0)), store, Stmt());
    IRModule module;
    module.set("main", prim_func({flag, b}, loop(i, extent, branch), {n}));
    std::string reason;
    PassContext context;
    context.on_remark = [&](const Remark& remark) { reason = remark.text; };
    (void)hoist_branches(module, context);
    return reason;
  };
  EXPECT_EQ(asked(n, b), "its condition may have no value, and the loop may not run at all");
  EXPECT_EQ(asked(int64(4), flag), "the loop may change what its condition reads");
  EXPECT_EQ(asked(int64(4), b), "");
}

}  // namespace
}  // namespace lathe::tir
