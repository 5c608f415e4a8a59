#include "tir/testing/differential.h"
#include "tir/testing/programs.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

Function with_scope(const char* scope, ForKind kind) {
  const Buffer b = buffer("B", {int64(4)}, DType::int64()), t = buffer("T", {int64(4)}, DType::int64(), scope);
  const Var i = var("i"), j = var("j");
  const Stmt body = seq({loop(i, int64(4), make<BufferStore>(t, i * 3, std::vector<Expr>{i}), kind),
                         loop(j, int64(4), make<BufferStore>(b, load(t, {j}), std::vector<Expr>{j}), kind)});
  return prim_func({b}, make<Allocate>(t->data, t->dtype, std::vector<Expr>{int64(4)}, std::string(scope), body));
}
std::string scope_of(const Function& f) { return f->body.as<Allocate>()->scope; }

TEST(legalize_registers, makes_of_programs_what_its_text_expects) { expect_text(legalize_registers, __FILE__); }

TEST(legalize_registers, refuses_a_register_buffer_with_a_variable_index) {
  EXPECT_EQ(refusal(with_scope("register", ForKind::serial), legalize_registers), "tir-register-index");
  EXPECT_EQ(refusal(run(with_scope("register", ForKind::unrolled), {unroll_loops}), legalize_registers), "");
}

TEST(legalize_registers, promotes_local_buffers_with_constant_indices) {
  const Function f = with_scope("local", ForKind::unrolled), g = run(f, {unroll_loops, legalize_registers});
  EXPECT_EQ(scope_of(g), "register");
  EXPECT_EQ(difference(f, g, 3), "");
  EXPECT_EQ(scope_of(run(with_scope("local", ForKind::serial), {legalize_registers})), "local");
}

}  // namespace
}  // namespace lathe::tir
