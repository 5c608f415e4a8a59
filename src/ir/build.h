// Building scalar expressions: constants, and arithmetic that folds constants. `a + 1` works on expressions; mixing
// dtypes is a DiagnosticError ("ir-dtype-mismatch") that names both.
#pragma once

#include "ir/expr.h"

namespace lathe::ir {

Var var(std::string name, DType dtype = DType::int64());
// A variable known to be at least zero, such as a symbolic dimension.
Var size_var(std::string name, DType dtype = DType::int64());

// `value` as a constant of `dtype` (rounded or wrapped; a vector dtype gives a Broadcast).
Expr constant(DType dtype, double value);
Expr constant(DType dtype, int64_t value);
inline Expr constant(DType dtype, int value) { return constant(dtype, static_cast<int64_t>(value)); }
inline Expr int64(int64_t value) { return constant(DType::int64(), value); }
inline Expr int32(int64_t value) { return constant(DType::int32(), value); }
inline Expr boolean(bool value) { return constant(DType::boolean(), static_cast<int64_t>(value)); }
// The value of an integer or bool constant (also when broadcast), or nothing.
std::optional<int64_t> as_int(const Expr& e);
inline bool is_int(const Expr& e, int64_t value) { return as_int(e) == value; }
std::optional<double> as_float(const Expr& e);
// The smallest and largest value of a dtype (floats: minus and plus the largest finite), and infinity.
Expr min_value(DType dtype);
Expr max_value(DType dtype);
Expr infinity(DType dtype);
// A double rounded to what `dtype` (any floating type) can hold, round to nearest even.
double round_to(DType dtype, double value);

Expr add(Expr a, Expr b);
Expr sub(Expr a, Expr b);
Expr mul(Expr a, Expr b);
Expr div(Expr a, Expr b);       // truncating for integers
Expr mod(Expr a, Expr b);       // truncating for integers
Expr floordiv(Expr a, Expr b);  // rounding down
Expr floormod(Expr a, Expr b);
Expr ceildiv(Expr a, Expr b);
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr eq(Expr a, Expr b);
Expr ne(Expr a, Expr b);
Expr lt(Expr a, Expr b);
Expr le(Expr a, Expr b);
Expr gt(Expr a, Expr b);
Expr ge(Expr a, Expr b);
Expr logical_and(Expr a, Expr b);
Expr logical_or(Expr a, Expr b);
Expr logical_not(Expr a);
Expr select(Expr condition, Expr a, Expr b);
Expr if_then_else(Expr condition, Expr a, Expr b);
Expr cast(DType dtype, Expr value);  // folds constants; the same handle where nothing changes
Expr call(DType dtype, const Intrinsic& op, std::vector<Expr> args);
// A pure unary function of the argument's dtype: `call(x, intrinsic::exp)`.
Expr call(const Intrinsic& op, Expr x);

Buffer buffer(std::string name, std::vector<Expr> shape, DType dtype, std::string scope = "global");
Expr load(const Buffer& buffer, std::vector<Expr> indices);

// The product of the extents; 1 for none.
Expr product(const std::vector<Expr>& extents);

template <class T>
concept ExprHandle = requires(const T& t) { Expr(t); } && !std::is_arithmetic_v<T>;

#define LATHE_OPERATOR(SYMBOL, FUNCTION)                   \
  template <ExprHandle A, ExprHandle B>                    \
  Expr operator SYMBOL(const A& a, const B& b) {           \
    return FUNCTION(Expr(a), Expr(b));                     \
  }                                                        \
  template <ExprHandle A>                                  \
  Expr operator SYMBOL(const A& a, int64_t b) {            \
    return FUNCTION(Expr(a), constant(Expr(a)->dtype, b)); \
  }                                                        \
  template <ExprHandle B>                                  \
  Expr operator SYMBOL(int64_t a, const B& b) {            \
    return FUNCTION(constant(Expr(b)->dtype, a), Expr(b)); \
  }
LATHE_OPERATOR(+, add)
LATHE_OPERATOR(-, sub)
LATHE_OPERATOR(*, mul)
LATHE_OPERATOR(<, lt)
LATHE_OPERATOR(<=, le)
LATHE_OPERATOR(>, gt)
LATHE_OPERATOR(>=, ge)
#undef LATHE_OPERATOR

}  // namespace lathe::ir
