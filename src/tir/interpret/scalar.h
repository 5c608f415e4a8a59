// The interpreter's values: scalars and short vectors, and arithmetic on them exactly as their dtype says.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir::interpreter {

// One lane. Integers and bools in `i` (wrapped to their dtype; uint64 as its bit pattern), floats in `f` (always a
// value that the dtype holds).
struct Scalar {
  int64_t i = 0;
  double f = 0;
};

// A value of any number of lanes; a scalar takes no heap memory.
struct Value {
  DType dtype;
  Scalar first;
  std::vector<Scalar> lanes;  // all lanes where there is more than one

  Value() = default;
  Value(DType t, Scalar s) : dtype(t), first(s) {}
  explicit Value(DType t) : dtype(t), lanes(t.is_vector() ? t.lanes : 0) {}
  const Scalar& lane(int k) const { return lanes.empty() ? first : lanes[static_cast<size_t>(k)]; }
  Scalar& lane(int k) { return lanes.empty() ? first : lanes[static_cast<size_t>(k)]; }
};

// `f` rounded to what the floating dtype holds; float32 through the machine's float.
double rounded(DType dtype, double f);

// The binary kinds, as values: which operation a node is.
enum class Operation : uint8_t {
  add,
  sub,
  mul,
  div,
  mod,
  floordiv,
  floormod,
  min,
  max,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  and_,
  or_
};

// `a op b` of scalars of dtype `t`. A comparison gives 0 or 1 in `i`. Throws DiagnosticError on integer division by 0.
Scalar compute(Operation op, DType t, const Scalar& a, const Scalar& b);
Scalar convert(DType to, DType from, const Scalar& value);
// The pure intrinsics that work lane by lane; false where `op` is none.
bool is_elementwise(const Intrinsic& op);
Scalar compute(const Intrinsic& op, DType result, DType argument, std::span<const Scalar> args);

uint64_t to_bits(DType dtype, const Scalar& value);
Scalar from_bits(DType dtype, uint64_t bits);

}  // namespace lathe::tir::interpreter
