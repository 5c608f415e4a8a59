#include "tir/testing/differential.h"
#include "tir/testing/programs.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(simplify, makes_of_programs_what_its_text_expects) { expect_text(simplify, __FILE__); }

TEST(simplify, removes_guards_that_always_hold_and_loops_of_one_iteration) {
  const Function f = flat_loop(8, ForKind::serial, [](const Buffer& a, const Expr& i) {
    return if_then_else(lt(i, int64(8)), load(a, {i}), constant(DType::float32(), 0));
  });
  EXPECT_EQ(count<Call>(run(f, {simplify})), 0);
  const Function one = flat_loop(1, ForKind::serial, [](const Buffer& a, const Expr& i) { return load(a, {i}); });
  EXPECT_EQ(count<For>(run(one, {simplify})), 0);
}

TEST(simplify, keeps_a_guard_of_the_last_iteration) {
  const Function f = flat_loop(8, ForKind::serial, [](const Buffer& a, const Expr& i) {
    return if_then_else(lt(i, int64(7)), load(a, {i + 1}), constant(DType::float32(), 0));
  });
  EXPECT_EQ(count<Call>(run(f, {simplify})), 1);
  EXPECT_EQ(difference(f, run(f, {simplify}), 3), "");
}

TEST(simplify, takes_nothing_from_an_empty_loop) {
  // The loop over j is empty unless i < 1; what follows runs for every i.
  const Buffer b = buffer("B", {int64(3)}, DType::int64());
  const Var i = var("i"), j = var("j");
  const auto set = [&](int64_t value) { return make<BufferStore>(b, int64(value), std::vector<Expr>{i}); };
  const Stmt body = seq({loop(j, 1 - i, set(7)), make<IfThenElse>(gt(i, int64(0)), set(5))});
  const Function f = prim_func({b}, loop(i, int64(3), body));
  EXPECT_EQ(difference(f, run(f, {simplify}), 3), "");
}

TEST(simplify, does_not_believe_a_condition_that_memory_decides) {
  // if A[0] > 0 { A[0] = -1; if A[0] > 0: A[1] = 9 }
  const Buffer a = buffer("A", {int64(2)}, DType::int32());
  const Expr positive = gt(load(a, {int64(0)}), int32(0));
  const auto set = [&](int64_t at, int64_t value) {
    return Stmt(make<BufferStore>(a, int32(value), std::vector<Expr>{int64(at)}));
  };
  const Function f =
      prim_func({a}, make<IfThenElse>(positive, seq({set(0, -1), make<IfThenElse>(positive, set(1, 9))})));
  for (uint64_t seed = 1; seed < 9; ++seed) EXPECT_EQ(difference(f, run(f, {simplify}), seed), "");
  EXPECT_EQ(count<IfThenElse>(run(f, {simplify})), 2);
}

}  // namespace
}  // namespace lathe::tir
