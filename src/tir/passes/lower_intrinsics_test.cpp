#include "tir/testing/differential.h"
#include "tir/testing/programs.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(lower_intrinsics, makes_of_programs_what_its_text_expects) { expect_text(lower_intrinsics, __FILE__); }

TEST(lower_intrinsics, drops_hints_and_keeps_their_argument) {
  const Function f = flat_loop(6, ForKind::serial, [](const Buffer& a, const Expr& i) {
    const Expr guard = call(DType::boolean(), intrinsic::likely, {lt(i, int64(4))});
    return if_then_else(guard, load(a, {i}), constant(DType::float32(), -1));
  });
  const Function g = run(f, {lower_intrinsics});
  EXPECT_EQ(count<Call>(g), 1);
  EXPECT_EQ(difference(f, g, 3), "");
}

}  // namespace
}  // namespace lathe::tir
