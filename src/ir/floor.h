// Quotients and remainders of int64 that round down, as floordiv and floormod do. The divisor is not 0, and not -1 for
// the smallest number.
#pragma once

#include <cstdint>

namespace lathe::ir {

// Whether the quotient that rounds towards zero lies above the one that rounds down.
constexpr bool rounds_up(int64_t a, int64_t b) { return a % b != 0 && (a % b < 0) != (b < 0); }
constexpr int64_t floor_div(int64_t a, int64_t b) { return a / b - rounds_up(a, b); }
// Not a - floor_div(a, b) * b: that product may lie below the smallest number.
constexpr int64_t floor_mod(int64_t a, int64_t b) { return a % b + (rounds_up(a, b) ? b : 0); }

}  // namespace lathe::ir
