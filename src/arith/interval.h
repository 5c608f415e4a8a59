// Arithmetic on ConstIntBound: exact where the ends are finite, saturating to "no bound" where they do not fit.
#pragma once

#include "arith/analyzer.h"
#include "arith/terms.h"

namespace lathe::arith {

inline constexpr int64_t minus_infinity = ConstIntBound::negative_infinity;
inline constexpr int64_t plus_infinity = ConstIntBound::positive_infinity;
inline bool finite(int64_t x) { return x != minus_infinity && x != plus_infinity; }
inline bool finite(ConstIntBound b) { return finite(b.min_value) && finite(b.max_value); }
inline bool is_point(ConstIntBound b) { return b.min_value == b.max_value && finite(b.min_value); }
inline bool contains(ConstIntBound b, int64_t x) { return b.min_value <= x && x <= b.max_value; }
// Whether every value of `inner` is one of `outer`.
inline bool within(ConstIntBound inner, ConstIntBound outer) {
  return outer.min_value <= inner.min_value && inner.max_value <= outer.max_value;
}

ConstIntBound intersect(ConstIntBound a, ConstIntBound b);
ConstIntBound unite(ConstIntBound a, ConstIntBound b);
ConstIntBound plus(ConstIntBound a, ConstIntBound b);
ConstIntBound minus(ConstIntBound a, ConstIntBound b);
ConstIntBound times(ConstIntBound a, ConstIntBound b);
ConstIntBound scale(ConstIntBound a, int64_t factor);
ConstIntBound quotient_down(ConstIntBound a, ConstIntBound b);  // floordiv
ConstIntBound remainder_down(ConstIntBound a, ConstIntBound b);
ConstIntBound quotient_toward_zero(ConstIntBound a, ConstIntBound b);
ConstIntBound remainder_toward_zero(ConstIntBound a, ConstIntBound b);

// The values an integer or bool dtype holds; of int64: every integer (see is_index), of uint64: from 0.
ConstIntBound range_of(DType dtype);

}  // namespace lathe::arith
