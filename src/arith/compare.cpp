// Comparisons of index sums with zero, in simplest form: decided by bounds, facts and remainders; divided by common
// factors; written with positive coefficients on both sides.
#include "arith/interval.h"
#include "arith/knowledge.h"

namespace lathe::arith {
namespace {

using namespace ir;

// Positive terms on the left, negative ones negated on the right; the constant stays apart.
struct Sides {
  Sum left, right;
};
Sides sides_of(const Sum& sum) {
  Sides sides{{.dtype = sum.dtype}, {.dtype = sum.dtype}};
  for (const Term& t : sum.terms) {
    if (t.coefficient > 0)
      sides.left.terms.push_back(t);
    else
      sides.right.terms.push_back({t.factor, -t.coefficient});
  }
  return sides;
}

void negate(Sum& sum) { sum.scale(-1); }

// Drops the terms that cannot decide d*A + r < 0: where (the constant bound of r) leaves A's threshold the same for
// every r. Turns the sum into A - threshold.
bool drop_small_terms(Knowledge& known, Sum& sum) {
  int64_t tried = 0;
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const int64_t d = std::abs(sum.terms[i].coefficient);
    if (d <= 1 || d == tried) continue;
    tried = d;
    Sum multiples{.dtype = sum.dtype}, rest{.dtype = sum.dtype};
    for (const Term& t : sum.terms) {
      if (t.coefficient % d == 0)
        multiples.terms.push_back({t.factor, t.coefficient / d});
      else
        rest.terms.push_back(t);
    }
    if (rest.terms.empty()) continue;
    // d*A < -k - r for r in [low, high]: A <= floor((-k - 1 - r) / d).
    const ConstIntBound r = bound_of(known, rest);
    if (!finite(r)) continue;
    const ConstIntBound limit = minus({-sum.constant - 1, -sum.constant - 1}, r);
    if (!finite(limit)) continue;
    const int64_t low = floor_div(limit.min_value, d), high = floor_div(limit.max_value, d);
    if (low != high) continue;
    multiples.constant = -low - 1;
    sum = std::move(multiples);
    return true;
  }
  return false;
}

}  // namespace

Expr less_than_zero(Knowledge& known, Sum sum) {
  support::require(!sum.overflow, "a sum that overflowed cannot be compared");
  const int lanes = sum.dtype.lanes;
  const auto answer = [&](bool value) { return constant(DType::boolean(lanes), int64_t{value}); };
  const ConstIntBound bound = bound_of(known, sum);
  if (bound.max_value < 0) return answer(true);
  if (bound.min_value >= 0) return answer(false);
  if (!known.facts.empty() || sum.terms.size() > 1) {
    if (prove_nonnegative(known, sum)) return answer(false);
    Sum opposite = sum;  // sum < 0 is -sum - 1 >= 0
    negate(opposite);
    opposite.add_constant(-1);
    if (prove_nonnegative(known, opposite)) return answer(true);
  }
  while (drop_small_terms(known, sum)) {
  }
  // g*T + k < 0 is T < ceil(-k / g).
  if (const int64_t g = sum.common_coefficient(); g > 1) {
    for (Term& t : sum.terms) t.coefficient /= g;
    sum.constant = floor_div(sum.constant, g);
  }
  const Sides sides = sides_of(sum);
  const int64_t k = sum.constant;
  if (sides.right.terms.empty()) return lt(to_expr(known, sides.left), constant(sum.dtype, -k));
  if (sides.left.terms.empty()) return le(constant(sum.dtype, k + 1), to_expr(known, sides.right));
  if (k == -1) return le(to_expr(known, sides.left), to_expr(known, sides.right));
  Sides whole = sides;
  (k > 0 ? whole.left : whole.right).constant = std::abs(k);
  return lt(to_expr(known, whole.left), to_expr(known, whole.right));
}

Expr equal_to_zero(Knowledge& known, Sum sum) {
  support::require(!sum.overflow, "a sum that overflowed cannot be compared");
  const int lanes = sum.dtype.lanes;
  const auto answer = [&](bool value) { return constant(DType::boolean(lanes), int64_t{value}); };
  if (sum.terms.empty()) return answer(sum.constant == 0);
  if (!contains(bound_of(known, sum), 0)) return answer(false);
  const ModularSet set = set_of(known, sum);
  if (set.coeff == 0 ? set.base != 0 : set.base % set.coeff != 0) return answer(false);
  const int64_t g = sum.common_coefficient();
  if (sum.constant % g != 0) return answer(false);
  for (Term& t : sum.terms) t.coefficient /= g;
  sum.constant /= g;
  if (!known.facts.empty() || sum.terms.size() > 1) {
    // Strictly of one sign, or both >= 0 and <= 0.
    Sum below = sum, above = sum;
    below.add_constant(-1);  // sum > 0
    negate(above);
    above.add_constant(-1);  // sum < 0
    if (prove_nonnegative(known, below) || prove_nonnegative(known, above)) return answer(false);
    Sum negative = sum;
    negate(negative);
    if (prove_nonnegative(known, sum) && prove_nonnegative(known, negative)) return answer(true);
  }
  // The term that comes first in the fixed order is positive.
  const Term* first = &sum.terms[0];
  for (const Term& t : sum.terms)
    if (compare(*t.factor, *first->factor, known.numbers) < 0) first = &t;
  if (first->coefficient < 0) negate(sum);
  Sides sides = sides_of(sum);
  if (sides.right.terms.empty() || sum.constant < 0)
    sides.right.constant = -sum.constant;
  else
    sides.left.constant = sum.constant;
  return eq(to_expr(known, sides.left), to_expr(known, sides.right));
}

}  // namespace lathe::arith
