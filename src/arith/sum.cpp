#include "arith/sum.h"

#include "arith/knowledge.h"

namespace lathe::arith {
namespace {

using namespace ir;

// A product of sums is multiplied out when it gives at most this many terms.
constexpr size_t largest_product = 16;

void append(Knowledge& known, const Expr& e, int64_t scale, Sum& sum);

Sum multiply(Knowledge& known, const Sum& a, const Sum& b) {
  Sum result{.dtype = a.dtype};
  result.overflow = a.overflow || b.overflow;
  int64_t coefficient = 0;
  result.overflow |= !checked_mul(a.constant, b.constant, coefficient);
  result.add_constant(coefficient);
  for (const Term& s : a.terms)
    if (b.constant) {
      result.overflow |= !checked_mul(s.coefficient, b.constant, coefficient);
      result.add(s.factor, coefficient);
    }
  for (const Term& t : b.terms)
    if (a.constant) {
      result.overflow |= !checked_mul(t.coefficient, a.constant, coefficient);
      result.add(t.factor, coefficient);
    }
  for (const Term& s : a.terms)
    for (const Term& t : b.terms) {
      std::vector<Expr> factors;
      factors_of(s.factor, factors);
      factors_of(t.factor, factors);
      result.overflow |= !checked_mul(s.coefficient, t.coefficient, coefficient);
      result.add(product_of(known, std::move(factors)), coefficient);
    }
  return result;
}

void append(Knowledge& known, const Expr& e, int64_t scale, Sum& sum) {
  int64_t product;
  switch (kind_of(e)) {
    case kind<IntImm>:
      sum.overflow |= !checked_mul(as<IntImm>(e).value, scale, product);
      sum.add_constant(product);
      return;
    case kind<Add>:
      append(known, as<Add>(e).a, scale, sum);
      append(known, as<Add>(e).b, scale, sum);
      return;
    case kind<Sub>:
      append(known, as<Sub>(e).a, scale, sum);
      sum.overflow |= scale == std::numeric_limits<int64_t>::min();
      append(known, as<Sub>(e).b, sum.overflow ? 0 : -scale, sum);
      return;
    case kind<Mul>: {
      const Expr &a = as<Mul>(e).a, &b = as<Mul>(e).b;
      if (const auto* c = b.as<IntImm>()) {
        sum.overflow |= !checked_mul(c->value, scale, product);
        return append(known, a, product, sum);
      }
      if (const auto* c = a.as<IntImm>()) {
        sum.overflow |= !checked_mul(c->value, scale, product);
        return append(known, b, product, sum);
      }
      const Sum left = to_sum(known, a), right = to_sum(known, b);
      if (left.is_constant() || right.is_constant() ||
          (left.terms.size() + 1) * (right.terms.size() + 1) <= largest_product) {
        sum.add(multiply(known, left, right), scale);
        return;
      }
      break;
    }
    default:
      break;
  }
  sum.add(e, scale);
}

}  // namespace

void Sum::add(const Expr& factor, int64_t coefficient) {
  if (coefficient == 0) return;
  for (size_t i = 0; i < terms.size(); ++i)
    if (same(terms[i].factor, factor)) {
      int64_t& total = terms[i].coefficient;
      overflow |= !checked_add(total, coefficient, total) || !fits(total);
      if (terms[i].coefficient == 0) terms.erase(terms.begin() + static_cast<ptrdiff_t>(i));
      return;
    }
  overflow |= !fits(coefficient);
  terms.push_back({factor, coefficient});
}

void Sum::add(const Sum& other, int64_t scale) {
  int64_t product;
  overflow |= other.overflow;
  overflow |= !checked_mul(other.constant, scale, product);
  add_constant(product);
  for (const Term& term : other.terms) {
    overflow |= !checked_mul(term.coefficient, scale, product);
    add(term.factor, product);
  }
}

void Sum::scale(int64_t factor) {
  if (factor == 0) terms.clear();
  const auto multiply = [&](int64_t& x) { overflow |= !checked_mul(x, factor, x) || !fits(x); };
  multiply(constant);
  for (Term& term : terms) multiply(term.coefficient);
}

int64_t Sum::common_coefficient() const {
  int64_t g = 0;
  for (const Term& term : terms) g = gcd(g, term.coefficient);
  return g;
}

int64_t Sum::coefficient_of(const Expr& factor) const {
  for (const Term& term : terms)
    if (same(term.factor, factor)) return term.coefficient;
  return 0;
}

void factors_of(const Expr& e, std::vector<Expr>& out) {
  if (kind_of(e) != kind<Mul>) return out.push_back(e);
  factors_of(as<Mul>(e).a, out);
  factors_of(as<Mul>(e).b, out);
}

Expr product_of(Knowledge& known, std::vector<Expr> factors) {
  sort_few(factors, [&](const Expr& a, const Expr& b) { return compare(*a, *b, known.numbers) < 0; });
  Expr product = factors[0];
  for (size_t i = 1; i < factors.size(); ++i) product = make<Mul>(product, factors[i]);
  return product;
}

Sum to_sum(Knowledge& known, const Expr& e) {
  Sum sum{.dtype = e->dtype};
  append(known, e, 1, sum);
  return sum;
}

}  // namespace lathe::arith
