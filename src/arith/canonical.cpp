// From a sum back to an expression: digits of one dividend joined, symbolic factors taken out, terms in a fixed order.
#include "arith/interval.h"
#include "arith/knowledge.h"

namespace lathe::arith {
namespace {

using namespace ir;

// A term read as digits of a dividend: (dividend // lower) % extent; extent 0: all digits from there on.
struct Digits {
  Expr dividend;
  int64_t lower = 1, extent = 0;
};

std::optional<int64_t> positive_constant(const Expr& e) {
  const auto* imm = e.as<IntImm>();
  return imm && imm->value > 0 ? std::optional(imm->value) : std::nullopt;
}

Digits digits_of(const Expr& e) {
  Digits digits{.dividend = e};
  if (const auto* mod = e.as<FloorMod>())
    if (const auto c = positive_constant(mod->b)) {
      digits.extent = *c;
      digits.dividend = mod->a;
    }
  if (const auto* div = digits.dividend.as<FloorDiv>())
    if (const auto c = positive_constant(div->b)) {
      digits.lower = *c;
      digits.dividend = div->a;
    }
  return digits;
}

Expr expr_of(const Digits& digits) {
  const DType dtype = digits.dividend->dtype;
  Expr e = floordiv(digits.dividend, constant(dtype, digits.lower));
  return digits.extent ? floormod(e, constant(dtype, digits.extent)) : e;
}

bool has_remainder(const Expr& product) {
  if (const auto* m = product.as<Mul>()) return has_remainder(m->a) || has_remainder(m->b);
  return kind_of(product) == kind<FloorMod>;
}

bool has_digits(const Sum& sum) {
  return std::any_of(sum.terms.begin(), sum.terms.end(), [](const Term& t) { return has_remainder(t.factor); });
}

// Whether `high` are the digits of `low.dividend` from number `next` on: by themselves, or as those of a number of
// which that dividend is a quotient, which was made simpler.
bool goes_on(Knowledge& known, const Digits& high, const Digits& low, int64_t next) {
  if (high.lower == next) return same(high.dividend, low.dividend);
  if (high.lower % next != 0) return false;
  const Expr quotient = floordiv_sum(known, to_sum(known, high.dividend), high.lower / next);
  return quotient && same(quotient, low.dividend);
}

// Joins one pair of neighbouring digits: high * (k * extent_low) + low * k is (the digits together) * k. True when one
// was found.
bool join_one(Knowledge& known, Sum& sum) {
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    if (kind_of(sum.terms[i].factor) != kind<FloorMod>) continue;
    const Digits low = digits_of(sum.terms[i].factor);
    if (!low.extent) continue;
    const int64_t k = sum.terms[i].coefficient;
    int64_t step, next;
    if (!checked_mul(k, low.extent, step) || !checked_mul(low.lower, low.extent, next)) continue;
    for (size_t j = 0; j < sum.terms.size(); ++j) {
      if (i == j || sum.terms[j].coefficient != step) continue;
      const Digits high = digits_of(sum.terms[j].factor);
      if (!goes_on(known, high, low, next)) continue;
      Digits joined{low.dividend, low.lower, 0};
      if (high.extent && !checked_mul(low.extent, high.extent, joined.extent)) continue;
      const Expr factor = expr_of(joined);
      const size_t first = std::max(i, j), second = std::min(i, j);
      sum.terms.erase(sum.terms.begin() + static_cast<ptrdiff_t>(first));
      sum.terms.erase(sum.terms.begin() + static_cast<ptrdiff_t>(second));
      sum.add(to_sum(known, factor), k);
      return true;
    }
  }
  return false;
}

std::vector<Expr> factors_in(const Expr& product) {
  std::vector<Expr> factors;
  factors_of(product, factors);
  return factors;
}

// Whether both hold the same factors, in any order.
bool same_factors(std::vector<Expr> a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return false;
  return std::all_of(b.begin(), b.end(), [&](const Expr& factor) {
    const auto it = std::find_if(a.begin(), a.end(), [&](const Expr& f) { return same(f, factor); });
    if (it == a.end()) return false;
    a.erase(it);
    return true;
  });
}

// Joins a quotient by a symbol and its remainder, each times the same: (x // n) * n * m + x % n * m is x * m. True when
// a pair was found.
bool join_one_by_symbol(Knowledge& known, Sum& sum) {
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const std::vector<Expr> factors = factors_in(sum.terms[i].factor);
    for (size_t f = 0; f < factors.size(); ++f) {
      const auto* remainder = factors[f].as<FloorMod>();
      if (!remainder || remainder->b.is<IntImm>()) continue;
      std::vector<Expr> others = factors;
      others.erase(others.begin() + static_cast<ptrdiff_t>(f));
      std::vector<Expr> wanted = factors_in(remainder->b);
      wanted.push_back(floordiv(remainder->a, remainder->b));
      wanted.insert(wanted.end(), others.begin(), others.end());
      for (size_t j = 0; j < sum.terms.size(); ++j) {
        if (j == i || sum.terms[j].coefficient != sum.terms[i].coefficient) continue;
        if (!same_factors(factors_in(sum.terms[j].factor), wanted)) continue;
        const int64_t coefficient = sum.terms[i].coefficient;
        const Expr joined = others.empty() ? remainder->a : mul(remainder->a, product_of(known, others));
        sum.terms.erase(sum.terms.begin() + static_cast<ptrdiff_t>(std::max(i, j)));
        sum.terms.erase(sum.terms.begin() + static_cast<ptrdiff_t>(std::min(i, j)));
        sum.add(to_sum(known, joined), coefficient);
        return true;
      }
    }
  }
  return false;
}

Expr scaled(const Term& term, int64_t coefficient, DType dtype) {
  return coefficient == 1 ? term.factor : mul(term.factor, constant(dtype, coefficient));
}

Expr without_factor(Knowledge& known, const Expr& product, const Expr& factor, DType dtype) {
  std::vector<Expr> factors = factors_in(product);
  const auto it = std::find_if(factors.begin(), factors.end(), [&](const Expr& f) { return same(f, factor); });
  factors.erase(it);
  return factors.empty() ? constant(dtype, int64_t{1}) : product_of(known, std::move(factors));
}

bool has_factor(const Expr& product, const Expr& factor) {
  if (const auto* m = product.as<Mul>()) return has_factor(m->a, factor) || has_factor(m->b, factor);
  return same(product, factor);
}

// Takes a symbolic factor out of the terms that share it: i*n + j*n becomes (i + j)*n, with fewer products.
void take_out_factors(Knowledge& known, Sum& sum) {
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    if (kind_of(sum.terms[i].factor) != kind<Mul>) continue;
    const std::vector<Expr> factors = factors_in(sum.terms[i].factor);
    for (auto f = factors.rbegin(); f != factors.rend(); ++f) {
      const Expr factor = *f;
      Sum group{.dtype = sum.dtype}, others{.dtype = sum.dtype, .constant = sum.constant};
      for (const Term& t : sum.terms)
        if (has_factor(t.factor, factor)) {
          const Expr rest = without_factor(known, t.factor, factor, sum.dtype);
          if (const auto* one = rest.as<IntImm>())
            group.add_constant(t.coefficient * one->value);
          else
            group.add(rest, t.coefficient);
        } else {
          others.terms.push_back(t);
        }
      if (group.terms.size() + (group.constant != 0) < 2) continue;
      const int64_t g = gcd(group.common_coefficient(), group.constant);
      for (Term& t : group.terms) t.coefficient /= g;
      group.constant /= g;
      const Expr product = make<Mul>(to_expr(known, group), factor);
      others.terms.insert(others.terms.begin(), {product, g});
      sum = std::move(others);
      i = static_cast<size_t>(-1);
      break;
    }
  }
}

Expr build(Knowledge& known, Sum& sum) {
  sort_few(sum.terms, [&](const Term& a, const Term& b) {
    if (std::abs(a.coefficient) != std::abs(b.coefficient)) return std::abs(a.coefficient) > std::abs(b.coefficient);
    return compare(*a.factor, *b.factor, known.numbers) < 0;
  });
  Expr e;
  for (const Term& t : sum.terms)
    if (t.coefficient > 0) e = e ? add(e, scaled(t, t.coefficient, sum.dtype)) : scaled(t, t.coefficient, sum.dtype);
  bool constant_done = false;
  if (!e && sum.constant > 0) {
    e = constant(sum.dtype, sum.constant);
    constant_done = true;
  }
  for (const Term& t : sum.terms)
    if (t.coefficient < 0) e = e ? sub(e, scaled(t, -t.coefficient, sum.dtype)) : scaled(t, t.coefficient, sum.dtype);
  if (!e) return constant(sum.dtype, sum.constant);
  if (constant_done || sum.constant == 0) return e;
  return sum.constant > 0 ? add(e, constant(sum.dtype, sum.constant)) : sub(e, constant(sum.dtype, -sum.constant));
}

}  // namespace

Expr to_expr(Knowledge& known, Sum sum, const Expr& original) {
  support::require(!sum.overflow, "a sum that overflowed has no expression");
  if (has_digits(sum))
    while (sum.terms.size() > 1 && !sum.overflow && (join_one(known, sum) || join_one_by_symbol(known, sum))) {
    }
  take_out_factors(known, sum);
  if (sum.overflow) return original;
  Expr e = build(known, sum);
  return original && same(e, original) ? original : e;
}

}  // namespace lathe::arith
