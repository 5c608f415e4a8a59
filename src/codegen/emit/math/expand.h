// Mathematical functions as expressions of arithmetic, selects and bit operations: one definition for every backend,
// and no call of a library. Each file says its method, its error and what it gives for infinities, NaN and -0.
#pragma once

#include "ir/build.h"

namespace lathe::codegen::math {

// What only functions that are written out call: lookup(i, c0, c1, …) is, in each lane, the entry that the low bits of
// i count to. Entries are int32 constants, Native::table_entries or Native::paired_entries in number.
inline constexpr ir::Intrinsic lookup{"lookup", -1, ir::Effect::pure, "an entry of a table in a register"};

// Functions that only functions that are written out call, of arguments that are seldom met: a backend writes them as
// functions of their own, once a module, and calls these, so that code that hardly runs stands in no kernel's way.
inline constexpr ir::Intrinsic sin_apart{"sin_apart", 1, ir::Effect::pure, "sin by a function of its own"};
inline constexpr ir::Intrinsic cos_apart{"cos_apart", 1, ir::Effect::pure, "cos by a function of its own"};
inline constexpr ir::Intrinsic exp_apart{"exp_apart", 1, ir::Effect::pure, "exp by a function of its own"};
inline constexpr ir::Intrinsic sigmoid_apart{"sigmoid_apart", 1, ir::Effect::pure, "sigmoid by a function of its own"};
inline bool stands_apart(const ir::Intrinsic& op) {
  return &op == &sin_apart || &op == &cos_apart || &op == &exp_apart || &op == &sigmoid_apart;
}

// What a backend has instructions for.
struct Native {
  bool fma = false;        // a fused product of floats
  int ldexp_lanes = 0;     // x * 2^k, rounded once, of so many float32 at a time; 0: of none
  int table_entries = 0;   // int32 that one instruction looks up in a register; 0: none does
  int paired_entries = 0;  // the same in two registers
  bool has_ldexp(ir::DType t) const {
    return t.is_ieee_float() && t.bits == 32 && ldexp_lanes > 0 && t.lanes % ldexp_lanes == 0;
  }
};

// Whether it is a function that has an expansion for some backend.
bool is_function(const ir::Intrinsic& op);
// The call written out, or null where a backend has the operation itself. Vectors stay vectors.
ir::Expr expand(const ir::Call& call, const Native& native = {});
// A choice between 0 and exp(x), or exp of x and no more than a bound, by how low x is, which takes less than both;
// null for any other.
ir::Expr expand(const ir::Select& choice, const Native& native = {});
// x * sigmoid(x), x * tanh(log(1 + exp(x))), and x * (1 + erf(y)) * 0.5 where one instruction looks up a table; null
// for any other product.
ir::Expr expand(const ir::Mul& product, const Native& native = {});
// 1 + erf(x), 1 + tanh(x) and max(x, 0) + log1p(exp(-|x|)), which is log(1 + exp(x)); null for any other sum.
ir::Expr expand(const ir::Add& sum, const Native& native = {});

}  // namespace lathe::codegen::math
