#include "tir/testing/programs.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(remove_no_op, makes_of_programs_what_its_text_expects) { expect_text(remove_no_op, __FILE__); }

TEST(remove_no_op, keeps_what_has_effects) {
  const Buffer b = buffer("B", {int64(4)}, DType::float32());
  const Expr address = call(DType::handle(), intrinsic::address_of, {load(b, {int64(0)})});
  const Stmt effect = make<Evaluate>(call(DType::int32(), intrinsic::call_extern, {make<StringImm>("f"), address}));
  const Var i = var("i");
  const Function f = prim_func({b}, seq({make<Evaluate>(load(b, {int64(1)})), loop(i, int64(3), effect)}));
  const Function g = run(f, {remove_no_op});
  EXPECT_EQ(count<Evaluate>(g), 1);
  EXPECT_EQ(count<For>(g), 1);
  const Function h = run(prim_func({b}, make<While>(boolean(true), nop())), {remove_no_op});
  EXPECT_EQ(count<While>(h), 1) << "it never ends";
}

}  // namespace
}  // namespace lathe::tir
