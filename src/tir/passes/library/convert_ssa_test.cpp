#include "tir/testing/programs.h"
#include "tir/testing/run.h"
#include "tir/verify.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(convert_ssa, makes_of_programs_what_its_text_expects) { expect_text(convert_ssa, __FILE__); }

// Whether every definition of the function stands once.
bool is_single(const Function& f) { return verify(f, {}).empty(); }

Stmt set(const Buffer& b, const Expr& at, Expr value) {
  return make<BufferStore>(b, std::move(value), std::vector<Expr>{at});
}

TEST(convert_ssa, gives_the_second_of_two_loops_a_variable_of_its_own) {
  const Buffer b = buffer("B", {int64(8)}, DType::int64());
  const Var i = var("i");
  const Function f = prim_func({b}, seq({loop(i, int64(4), set(b, i, i)), loop(i, int64(4), set(b, i + 4, i * 3))}));
  ASSERT_FALSE(is_single(f));
  const Function g = run(f, {convert_ssa});
  EXPECT_TRUE(is_single(g));
  EXPECT_EQ(difference(f, g, 3), "");
}

// The bound of the inner loop is of the outer one's variable.
TEST(convert_ssa, tells_a_variable_from_one_of_the_same_node_around_it) {
  const Buffer b = buffer("B", {int64(6)}, DType::int64());
  const Var i = var("i");
  const Stmt inner = make<For>(i, int64(0), add(i, int64(2)), ForKind::serial, set(b, i, i * 7));
  const Function f = prim_func({b}, seq({loop(i, int64(5), inner)}));
  const Function g = run(f, {convert_ssa});
  EXPECT_TRUE(is_single(g));
  const auto* outer = g->body.as<For>();
  const auto* renamed = outer->body.as<For>();
  EXPECT_NE(outer->loop_var, renamed->loop_var);
  EXPECT_TRUE(uses_var(renamed->extent, outer->loop_var));
  EXPECT_TRUE(uses_var(renamed->body, renamed->loop_var) && !uses_var(renamed->body, outer->loop_var));
}

TEST(convert_ssa, tells_lets_allocations_and_blocks_apart) {
  const Buffer b = buffer("B", {int64(2), int64(4)}, DType::int64());
  const Buffer t = buffer("T", {int64(4)}, DType::int64());
  const Var i = var("i"), v = var("v"), x = var("x");
  const auto half = [&](int64_t row) {
    const Stmt fill = loop(i, int64(4), make<LetStmt>(x, i * (row + 2), set(t, i, x + 1)));
    const Stmt body = make<BufferStore>(b, load(t, {v}), std::vector<Expr>{int64(row), v});
    const Stmt copied = loop(i, int64(4), block("copy", {iter(v, int64(4))}, {i}, body));
    return Stmt(make<DeclBuffer>(t, seq({fill, copied})));
  };
  const Function f = prim_func({b}, seq({half(0), half(1)}));
  ASSERT_FALSE(is_single(f));
  const Function g = run(f, {convert_ssa});
  EXPECT_TRUE(is_single(g)) << support::render(verify(g, {}));
  EXPECT_EQ(difference(f, g, 3), "");
}

TEST(convert_ssa, tells_lets_inside_expressions_apart) {
  const Buffer b = buffer("B", {int64(1)}, DType::int64());
  const Var x = var("x");
  const Expr one = make<Let>(x, int64(3), x * x), other = make<Let>(x, int64(4), x * x);
  const Function f = prim_func({b}, set(b, int64(0), make<Sub>(one, other)));
  ASSERT_FALSE(is_single(f));
  const Function g = run(f, {convert_ssa});
  EXPECT_TRUE(is_single(g));
  EXPECT_EQ(difference(f, g, 3), "");
}

TEST(convert_ssa, leaves_programs_that_are_so_as_they_are) {
  const Function f = matmul(int64(3), int64(5), int64(2), 4, ForKind::serial);
  EXPECT_TRUE(run(f, {convert_ssa}).same_as(f));
}

}  // namespace
}  // namespace lathe::tir
