// Bits of integers. Shifts by the width or more give 0; of negative numbers a right shift gives -1.
#include "ops/elementwise/elementwise.h"

namespace lathe::ops {

using enum DTypeSet;

namespace {

Operator of_bits(std::string_view name, const ir::Intrinsic& intrinsic, std::string_view reference) {
  return binary(
      name, integer, [&intrinsic](const Expr& a, const Expr& b) { return ir::call(a->dtype, intrinsic, {a, b}); },
      reference);
}

}  // namespace

const Operator bitwise_and = of_bits("bitwise_and", ir::intrinsic::bitwise_and, "a & b");
const Operator bitwise_or = of_bits("bitwise_or", ir::intrinsic::bitwise_or, "a | b");
const Operator bitwise_xor = of_bits("bitwise_xor", ir::intrinsic::bitwise_xor, "a ^ b");
const Operator bitwise_not =
    unary("bitwise_not", integer, [](const Expr& x) { return ir::call(ir::intrinsic::bitwise_not, x); }, "~x");
const Operator left_shift = of_bits("left_shift", ir::intrinsic::shift_left, "a << b");
const Operator right_shift = of_bits("right_shift", ir::intrinsic::shift_right, "a >> b");

}  // namespace lathe::ops
