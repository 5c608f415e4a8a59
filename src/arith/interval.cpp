#include "arith/interval.h"

#include "support/mutation.h"

namespace lathe::arith {

LATHE_FAULT(arith_remainder_bound, "arith_test", "a remainder is believed not to reach the divisor less one");

namespace {

int64_t saturate(__int128 x) {
  if (x <= minus_infinity) return minus_infinity;
  if (x >= plus_infinity) return plus_infinity;
  return static_cast<int64_t>(x);
}

int64_t add_low(int64_t a, int64_t b) {
  if (a == minus_infinity || b == minus_infinity) return minus_infinity;
  return saturate(static_cast<__int128>(a) + b);
}
int64_t add_high(int64_t a, int64_t b) {
  if (a == plus_infinity || b == plus_infinity) return plus_infinity;
  return saturate(static_cast<__int128>(a) + b);
}
int64_t negate(int64_t a) { return a == minus_infinity ? plus_infinity : a == plus_infinity ? minus_infinity : -a; }

int sign(int64_t a) { return a < 0 ? -1 : a > 0; }
int64_t product(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (finite(a) && finite(b)) return saturate(static_cast<__int128>(a) * b);
  return sign(a) * sign(b) > 0 ? plus_infinity : minus_infinity;
}

// The hull of op over the four pairs of ends.
template <class Op>
ConstIntBound corners(ConstIntBound a, ConstIntBound b, Op op) {
  const int64_t values[] = {op(a.min_value, b.min_value), op(a.min_value, b.max_value), op(a.max_value, b.min_value),
                            op(a.max_value, b.max_value)};
  return {*std::min_element(values, values + 4), *std::max_element(values, values + 4)};
}

// Rounds down; an infinite divisor gives what the quotient tends to from one side.
int64_t divide_down(int64_t a, int64_t b) {
  if (finite(a) && finite(b)) return floor_div(a, b);
  if (finite(a)) return a == 0 || sign(a) == sign(b) ? 0 : -1;
  if (finite(b)) return sign(a) == sign(b) ? plus_infinity : minus_infinity;
  return sign(a) == sign(b) ? plus_infinity : minus_infinity;
}
int64_t divide_toward_zero(int64_t a, int64_t b) {
  if (finite(a) && finite(b)) return a / b;
  if (finite(a)) return 0;
  return sign(a) == sign(b) ? plus_infinity : minus_infinity;
}

// The divisors of an interval with one sign, as up to two intervals; 0 divides nothing and is left out.
template <class Op>
ConstIntBound over_divisors(ConstIntBound a, ConstIntBound b, Op op) {
  ConstIntBound result;
  bool found = false;
  const auto include = [&](ConstIntBound part) {
    const ConstIntBound r = op(a, part);
    result = found ? unite(result, r) : r;
    found = true;
  };
  if (b.max_value > 0) include({std::max<int64_t>(b.min_value, 1), b.max_value});
  if (b.min_value < 0) include({b.min_value, std::min<int64_t>(b.max_value, -1)});
  return result;
}

}  // namespace

ConstIntBound intersect(ConstIntBound a, ConstIntBound b) {
  return {std::max(a.min_value, b.min_value), std::min(a.max_value, b.max_value)};
}
ConstIntBound unite(ConstIntBound a, ConstIntBound b) {
  return {std::min(a.min_value, b.min_value), std::max(a.max_value, b.max_value)};
}
ConstIntBound plus(ConstIntBound a, ConstIntBound b) {
  return {add_low(a.min_value, b.min_value), add_high(a.max_value, b.max_value)};
}
ConstIntBound minus(ConstIntBound a, ConstIntBound b) { return plus(a, {negate(b.max_value), negate(b.min_value)}); }
ConstIntBound times(ConstIntBound a, ConstIntBound b) { return corners(a, b, product); }
ConstIntBound scale(ConstIntBound a, int64_t factor) {
  const int64_t low = product(a.min_value, factor), high = product(a.max_value, factor);
  return factor < 0 ? ConstIntBound{high, low} : ConstIntBound{low, high};
}

ConstIntBound quotient_down(ConstIntBound a, ConstIntBound b) {
  return over_divisors(a, b, [](ConstIntBound x, ConstIntBound y) {
    ConstIntBound r = corners(x, y, divide_down);
    // Between the ends of an interval that spans 0 lies 0.
    if (contains(x, 0)) r = unite(r, {0, 0});
    return r;
  });
}
ConstIntBound quotient_toward_zero(ConstIntBound a, ConstIntBound b) {
  return over_divisors(a, b, [](ConstIntBound x, ConstIntBound y) {
    ConstIntBound r = corners(x, y, divide_toward_zero);
    if (contains(x, 0)) r = unite(r, {0, 0});
    return r;
  });
}

ConstIntBound remainder_down(ConstIntBound a, ConstIntBound b) {
  return over_divisors(a, b, [](ConstIntBound x, ConstIntBound y) -> ConstIntBound {
    if (y.min_value < 0) return {add_low(y.min_value, 1), 0};
    // Within one block of a constant divisor the remainder moves with the dividend.
    if (is_point(y) && finite(x) && floor_div(x.min_value, y.min_value) == floor_div(x.max_value, y.min_value))
      return {floor_mod(x.min_value, y.min_value), floor_mod(x.max_value, y.min_value)};
    // Below the smallest divisor the remainder is the dividend.
    if (x.min_value >= 0 && x.max_value < y.min_value) return x;
    const int64_t high = add_high(y.max_value, support::flip(arith_remainder_bound) ? -2 : -1);
    return {0, x.min_value >= 0 ? std::min(x.max_value, high) : high};
  });
}
ConstIntBound remainder_toward_zero(ConstIntBound a, ConstIntBound b) {
  return over_divisors(a, b, [](ConstIntBound x, ConstIntBound y) -> ConstIntBound {
    if (y.min_value < 0) y = {negate(y.max_value), negate(y.min_value)};
    if (x.min_value >= 0 && x.max_value < y.min_value) return x;
    const int64_t largest = add_high(y.max_value, -1);
    return {x.min_value >= 0 ? 0 : std::max(x.min_value, negate(largest)),
            x.max_value <= 0 ? 0 : std::min(x.max_value, largest)};
  });
}

ConstIntBound range_of(DType dtype) {
  if (dtype.is_bool()) return {0, 1};
  if (dtype.is_uint() && dtype.bits == 64) return {0, plus_infinity};
  if (!dtype.is_integer() || dtype.bits == 64) return {};
  return {ir::min_integer(dtype), ir::max_integer(dtype)};
}

}  // namespace lathe::arith
