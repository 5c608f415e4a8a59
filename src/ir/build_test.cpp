#include "ir/build.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/structural.h"
#include "ir/visit.h"

namespace lathe::ir {
namespace {

// Constants fold as the operation wraps: for every pair of values of the small widths.
TEST(folding, wraps_as_values_do) {
  for (const DType t : {DType::int_(4), DType::uint(4), DType::int_(8), DType::uint(8)}) {
    const int64_t low = min_integer(t), high = max_integer(t), step = t.bits == 8 ? 7 : 1;
    for (int64_t a = low; a <= high; a += step)
      for (int64_t b = low; b <= high; b += step) {
        const Expr x = constant(t, a), y = constant(t, b);
        EXPECT_EQ(as_int(x + y), wrap_integer(a + b, t));
        EXPECT_EQ(as_int(x - y), wrap_integer(a - b, t));
        EXPECT_EQ(as_int(x * y), wrap_integer(a * b, t));
        EXPECT_EQ(as_int(min(x, y)), std::min(a, b));
        EXPECT_EQ(as_int(max(x, y)), std::max(a, b));
        EXPECT_EQ(as_int(x < y), a < b);
        EXPECT_EQ(as_int(le(x, y)), a <= b);
        EXPECT_EQ(as_int(eq(x, y)), a == b);
        if (b == 0) {
          EXPECT_FALSE(as_int(floordiv(x, y))) << "a division by zero stays";
          EXPECT_FALSE(as_int(mod(x, y)));
          continue;
        }
        EXPECT_EQ(as_int(div(x, y)), wrap_integer(a / b, t));
        EXPECT_EQ(as_int(mod(x, y)), a % b);
        const auto down = static_cast<int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
        EXPECT_EQ(as_int(floordiv(x, y)), wrap_integer(down, t));
        EXPECT_EQ(as_int(floormod(x, y)), a - down * b);
      }
  }
}

TEST(folding, leaves_what_has_no_value) {
  const Expr smallest = min_value(DType::int64()), minus_one = int64(-1);
  EXPECT_FALSE(as_int(div(smallest, minus_one)));
  EXPECT_FALSE(as_int(floormod(smallest, minus_one)));
  EXPECT_EQ(as_int(floormod(smallest, int64(94))), 58);  // 94 times the quotient is no number of 64 bits
  EXPECT_EQ(as_int(floormod(int64(9223372036854775807), int64(-94))), -59);
  const Var x = var("x");
  EXPECT_TRUE((x + 0).same_as(Expr(x)));
  EXPECT_TRUE((x * 1).same_as(Expr(x)));
  EXPECT_TRUE(is_int(x * 0, 0));
  EXPECT_TRUE(is_int(floormod(x, int64(1)), 0));
}

TEST(folding, keeps_the_signs_and_nans_of_floats) {
  const Var f = var("f", DType::float32());
  EXPECT_FALSE(as_float(f * constant(DType::float32(), 0.0)));
  EXPECT_TRUE((f + constant(DType::float32(), 0.0)).is<Add>());
  EXPECT_TRUE((f - f).is<Sub>());
  const Expr third = div(constant(DType::float32(), 1), constant(DType::float32(), 3));
  EXPECT_EQ(as_float(third), static_cast<double>(1.0f / 3.0f));
  const Expr big = constant(DType::float32(), 3e38);
  EXPECT_EQ(as_float(big + big), std::numeric_limits<double>::infinity());
  const Expr zero = constant(DType::float32(), 0.0);
  EXPECT_TRUE(std::isnan(*as_float(div(zero, zero))));
  EXPECT_TRUE(std::signbit(*as_float(constant(DType::float32(), -0.0))));
}

TEST(casting, folds_as_it_is_defined) {
  EXPECT_EQ(as_int(cast(DType::int_(8), int64(300))), 44);
  EXPECT_EQ(as_int(cast(DType::uint(8), int64(-1))), 255);
  EXPECT_EQ(as_int(cast(DType::boolean(), int64(2))), 1);
  EXPECT_EQ(as_int(cast(DType::boolean(), constant(DType::float32(), 0.5))), 1);
  EXPECT_EQ(as_int(cast(DType::int64(), constant(DType::float32(), -1.9))), -1);
  EXPECT_EQ(as_float(cast(DType::float_(16), constant(DType::float32(), 2049.0))), 2048.0);
  EXPECT_FALSE(as_int(cast(DType::int64(), constant(DType::float_(64), 1e30))));
  EXPECT_FALSE(as_int(cast(DType::int64(), constant(DType::float_(64), std::nan("")))));
  const Var x = var("x");
  EXPECT_TRUE(cast(DType::int64(), x).same_as(Expr(x)));
  EXPECT_EQ(cast(DType::float_(32, 4), x)->dtype, DType::float_(32, 4));
}

TEST(building, names_both_dtypes_of_a_mismatch) {
  const Var x = var("x"), f = var("f", DType::float32());
  try {
    const Expr sum = x + f;
    FAIL() << "a sum of int64 and float32";
  } catch (const support::DiagnosticError& error) {
    EXPECT_EQ(error.diagnostics[0].code, support::Code{"ir-dtype-mismatch"});
    EXPECT_NE(error.diagnostics[0].message.find("int64"), std::string::npos);
    EXPECT_NE(error.diagnostics[0].message.find("float32"), std::string::npos);
  }
  EXPECT_THROW(logical_and(x, x), support::DiagnosticError);
  EXPECT_THROW(select(x, x, x), support::DiagnosticError);
  EXPECT_THROW(call(DType::float32(), intrinsic::pow, {f}), support::DiagnosticError);
  EXPECT_THROW(load(buffer("A", {int64(4)}, DType::float32()), {x, x}), support::DiagnosticError);
  EXPECT_THROW(constant(DType::handle(), int64_t{0}), support::DiagnosticError);
}

TEST(building, broadcasts_scalars_to_vectors) {
  const Expr lanes = make<Ramp>(int64(0), int64(1), int64_t{4});
  const Var x = var("x");
  EXPECT_EQ((lanes + x)->dtype, DType::int_(64, 4));
  EXPECT_EQ((x < lanes)->dtype, DType::boolean(4));
  EXPECT_EQ(as_int(constant(DType::int_(8, 4), 300)), 44);
}

TEST(building, extremes_of_every_dtype_are_its_own) {
  for (const char* name : {"int8", "uint8", "int2", "uint64", "int64", "float16", "bfloat16", "float32", "float64",
                           "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn",
                           "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"}) {
    const DType t = *DType::parse(name);
    EXPECT_EQ(max_value(t)->dtype, t);
    if (!t.is_floating()) continue;
    const double largest = *as_float(max_value(t));
    EXPECT_EQ(round_to(t, largest), largest) << name;
    EXPECT_EQ(*as_float(min_value(t)), -largest) << name;
    if (t.bits < 64) EXPECT_NE(round_to(t, largest * 1.25), largest * 1.25) << name << " holds more than its largest";
  }
}

TEST(intrinsics, are_found_by_name) {
  EXPECT_EQ(find_intrinsic("exp"), &intrinsic::exp);
  EXPECT_EQ(find_intrinsic("call_extern"), &intrinsic::call_extern);
  EXPECT_EQ(find_intrinsic("no_such_function"), nullptr);
  EXPECT_EQ(call(intrinsic::exp, var("x", DType::float_(16, 8)))->dtype, DType::float_(16, 8));
  EXPECT_EQ(intrinsic::prefetch.effect, Effect::updates);
}

TEST(binding, free_variables_are_those_not_bound) {
  const Var x = var("x"), y = var("y"), z = var("z");
  const Expr let = make<Let>(x, y + 1, x * z);
  const auto free = free_vars(let);
  ASSERT_EQ(free.size(), 2u);
  EXPECT_TRUE(free[0] == y && free[1] == z);
  EXPECT_TRUE(uses_var(let, z));
  EXPECT_FALSE(uses_var(let, var("z")));
}

TEST(substitution, replaces_all_at_once) {
  const Var x = var("x"), y = var("y");
  const Expr swapped = substitute(Expr(x * 2 + y), {{x, y}, {y, x}});
  EXPECT_TRUE(structural_equal(swapped, Expr(y * 2 + x)));
  const Expr e = x * 2;
  EXPECT_TRUE(substitute(e, {{y, x}}).same_as(e));
}

}  // namespace
}  // namespace lathe::ir
