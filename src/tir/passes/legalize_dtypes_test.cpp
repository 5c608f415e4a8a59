#include "tir/testing/differential.h"
#include "tir/testing/programs.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(legalize_dtypes, makes_of_programs_what_its_text_expects) { expect_text(legalize_dtypes, __FILE__); }

TEST(legalize_dtypes, computes_narrow_floats_in_float32_with_the_same_bits) {
  for (const DType half : {DType::float_(16), DType::bfloat16(), *DType::parse("float8_e4m3fn"),
                           *DType::parse("float8_e5m2fnuz"), *DType::parse("float4_e2m1fn")}) {
    const Function f = flat_loop(
        64, ForKind::serial,
        [&](const Buffer& a, const Expr& i) {
          const Expr x = load(a, {i}), y = load(a, {int64(63) - i});
          return select(lt(x, y), div(x * y, y + constant(half, 0.375)),
                        call(intrinsic::rsqrt, call(intrinsic::exp, x)) - y * y);
        },
        half);
    const Function g = run(f, {legalize_dtypes});
    EXPECT_EQ(difference(f, g, 3), "") << half.str();
    post_order(g->body, [&](const NodeRef& n) {
      if (const auto* sum = n.as<Add>()) EXPECT_FALSE(sum->dtype == half);
      if (const auto* product = n.as<Mul>()) EXPECT_FALSE(product->dtype == half);
    });
  }
}

}  // namespace
}  // namespace lathe::tir
