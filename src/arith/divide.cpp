// Quotients and remainders of sums by a positive constant, rounding down. What a divisor takes out of a sum exactly is
// taken out; the rest is decided by bounds, or shrunk by common factors.
#include "arith/interval.h"
#include "arith/knowledge.h"
#include "support/mutation.h"

namespace lathe::arith {

LATHE_FAULT(arith_quotient_split, "arith_test",
            "a quotient of a sum loses what the divisor's common factor leaves of the constant");

namespace {

using namespace ir;

// The parts of a sum whose coefficients `d` divides, divided by it, and the others with the constant.
struct Parts {
  Sum multiples, rest;
};
Parts split(const Sum& sum, int64_t d) {
  Parts parts{{.dtype = sum.dtype}, {.dtype = sum.dtype}};
  for (const Term& t : sum.terms) {
    if (t.coefficient % d == 0)
      parts.multiples.terms.push_back({t.factor, t.coefficient / d});
    else
      parts.rest.terms.push_back(t);
  }
  parts.multiples.constant = floor_div(sum.constant, d);
  parts.rest.constant = floor_mod(sum.constant, d);
  return parts;
}

Sum constant_sum(DType dtype, int64_t value) { return {.dtype = dtype, .constant = value}; }

// The block of size d that all values of `sum` lie in, when it is one: sum // d.
std::optional<int64_t> one_block(Knowledge& known, const Sum& sum, int64_t d) {
  const ConstIntBound bound = bound_of(known, sum);
  if (!finite(bound) || floor_div(bound.min_value, d) != floor_div(bound.max_value, d)) return std::nullopt;
  return floor_div(bound.min_value, d);
}

// A divisor d of `divisor`, 1 < d < divisor, such that the terms that d does not divide stay in one block of size d:
// then quotient and remainder go by the other terms alone. The largest such d, or 0.
int64_t inner_divisor(Knowledge& known, const Sum& sum, int64_t divisor) {
  int64_t best = 0;
  for (const Term& t : sum.terms) {
    const int64_t d = gcd(t.coefficient, divisor);
    if (d <= 1 || d >= divisor || d <= best) continue;
    if (one_block(known, split(sum, d).rest, d)) best = d;
  }
  return best;
}

// `x` where e is x % m and `divisor` divides m times the coefficient: as good as e modulo `divisor`.
const Expr* inside_remainder(const Term& t, int64_t divisor) {
  const auto* mod = t.factor.as<FloorMod>();
  if (!mod) return nullptr;
  const auto* m = mod->b.as<IntImm>();
  int64_t step;
  if (!m || m->value <= 0 || !checked_mul(m->value, t.coefficient, step) || step % divisor != 0) return nullptr;
  return &mod->a;
}

// (x // a + k) // divisor is (x + k*a) // (a*divisor): the dividend and divisor, where sum has that form.
bool nested_quotient(Knowledge& known, const Sum& sum, int64_t divisor, Sum& dividend, int64_t& product) {
  if (sum.terms.size() != 1 || sum.terms[0].coefficient != 1) return false;
  const auto* div = sum.terms[0].factor.as<FloorDiv>();
  if (!div) return false;
  const auto* a = div->b.as<IntImm>();
  int64_t shift;
  if (!a || a->value <= 0 || !checked_mul(a->value, divisor, product) || product > Sum::limit ||
      !checked_mul(a->value, sum.constant, shift))
    return false;
  dividend = to_sum(known, div->a);
  dividend.add_constant(shift);
  return !dividend.overflow;
}

// (x % m) // divisor is (x // divisor) % (m / divisor) where divisor divides m.
bool quotient_of_digits(const Sum& sum, int64_t divisor, Expr& dividend, int64_t& extent) {
  if (sum.terms.size() != 1 || sum.terms[0].coefficient != 1 || sum.constant != 0) return false;
  const auto* mod = sum.terms[0].factor.as<FloorMod>();
  if (!mod) return false;
  const auto* m = mod->b.as<IntImm>();
  if (!m || m->value <= 0 || m->value % divisor != 0) return false;
  dividend = mod->a;
  extent = m->value / divisor;
  return true;
}

}  // namespace

Sum floordiv_to_sum(Knowledge& known, Sum numerator, int64_t divisor) {
  support::require(divisor > 0, "floordiv_to_sum takes a positive divisor");
  if (numerator.overflow || divisor == 1) return numerator;
  const DType dtype = numerator.dtype;
  Parts parts = split(numerator, divisor);
  Sum quotient = std::move(parts.multiples);
  Sum& rest = parts.rest;
  if (const auto block = one_block(known, rest, divisor)) {
    quotient.add_constant(*block);
    return quotient;
  }
  // (g*r + k) // (g*d) is (r + k//g) // d.
  if (const int64_t g = gcd(rest.common_coefficient(), divisor); g > 1) {
    for (Term& t : rest.terms) t.coefficient /= g;
    rest.constant = support::flip(arith_quotient_split) ? 0 : floor_div(rest.constant, g);
    quotient.add(floordiv_to_sum(known, std::move(rest), divisor / g));
    return quotient;
  }
  if (const int64_t d = inner_divisor(known, rest, divisor)) {
    Parts inner = split(rest, d);
    inner.multiples.add_constant(one_block(known, inner.rest, d).value_or(0));
    quotient.add(floordiv_to_sum(known, std::move(inner.multiples), divisor / d));
    return quotient;
  }
  Sum dividend;
  int64_t product;
  if (nested_quotient(known, rest, divisor, dividend, product)) {
    quotient.add(floordiv_to_sum(known, std::move(dividend), product));
    return quotient;
  }
  Expr inner;
  if (quotient_of_digits(rest, divisor, inner, product)) {
    quotient.add(floormod_to_sum(known, floordiv_to_sum(known, to_sum(known, inner), divisor), product));
    return quotient;
  }
  if (rest.overflow) {
    quotient.overflow = true;
    return quotient;
  }
  quotient.add(make<FloorDiv>(to_expr(known, std::move(rest)), constant(dtype, divisor)), 1);
  return quotient;
}

Expr floordiv_sum(Knowledge& known, Sum numerator, int64_t divisor) {
  const Sum quotient = floordiv_to_sum(known, std::move(numerator), divisor);
  return quotient.overflow ? Expr() : to_expr(known, quotient);
}

Sum floormod_to_sum(Knowledge& known, Sum numerator, int64_t divisor) {
  support::require(divisor > 0, "floormod_to_sum takes a positive divisor");
  const DType dtype = numerator.dtype;
  if (divisor == 1) return constant_sum(dtype, 0);
  Sum rest = split(numerator, divisor).rest;
  rest.overflow = numerator.overflow;
  if (rest.overflow) return rest;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < rest.terms.size() && !changed; ++i)
      if (const Expr* x = inside_remainder(rest.terms[i], divisor)) {
        const Expr inner = *x;
        const int64_t coefficient = rest.terms[i].coefficient;
        rest.terms.erase(rest.terms.begin() + static_cast<ptrdiff_t>(i));
        rest.add(to_sum(known, inner), coefficient);
        rest = split(rest, divisor).rest;
        changed = true;
      }
  }
  // Coefficients stay as they are: quotient and remainder of one dividend are to be recognised as such.
  if (const auto block = one_block(known, rest, divisor)) {
    rest.add_constant(-*block * divisor);
    return rest;
  }
  if (const int64_t g = gcd(rest.common_coefficient(), divisor); g > 1) {
    // (g*r + k) % (g*d) is g * ((r + k//g) % d) + k % g.
    const int64_t low = floor_mod(rest.constant, g);
    for (Term& t : rest.terms) t.coefficient /= g;
    rest.constant = floor_div(rest.constant, g);
    Sum result = floormod_to_sum(known, std::move(rest), divisor / g);
    result.scale(g);
    result.add_constant(low);
    return result;
  }
  if (const int64_t d = inner_divisor(known, rest, divisor)) {
    // d*A + r with r in [b*d, b*d + d): d * ((A + b) % (divisor/d)) + (r - b*d).
    Parts inner = split(rest, d);
    const int64_t block = one_block(known, inner.rest, d).value_or(0);
    inner.multiples.add_constant(block);
    Sum result = floormod_to_sum(known, std::move(inner.multiples), divisor / d);
    result.scale(d);
    result.add(inner.rest);
    result.add_constant(-block * d);
    return result;
  }
  Sum result{.dtype = dtype};
  result.add(make<FloorMod>(to_expr(known, std::move(rest)), constant(dtype, divisor)), 1);
  return result;
}

bool split_by(Knowledge& known, const Sum& numerator, const Expr& divisor, Sum& multiples, Sum& rest) {
  multiples = {.dtype = numerator.dtype};
  rest = {.dtype = numerator.dtype, .constant = numerator.constant, .overflow = numerator.overflow};
  for (const Term& t : numerator.terms) {
    std::vector<Expr> factors;
    factors_of(t.factor, factors);
    const auto it = std::find_if(factors.begin(), factors.end(), [&](const Expr& f) { return same(f, divisor); });
    if (it == factors.end()) {
      rest.terms.push_back(t);
      continue;
    }
    factors.erase(it);
    if (factors.empty())
      multiples.add_constant(t.coefficient);
    else
      multiples.add(product_of(known, std::move(factors)), t.coefficient);
  }
  return !multiples.terms.empty() || multiples.constant != 0;
}

}  // namespace lathe::arith
