// Proving that a sum is never negative: by bounds, then by taking away facts that are >= 0 (each step removes a term,
// as in Fourier and Motzkin's elimination), to a small depth. And what a condition adds to the facts.
#include "arith/interval.h"
#include "arith/knowledge.h"

namespace lathe::arith {
namespace {

using namespace ir;

bool nonnegative_by_facts(Knowledge& known, const Sum& sum, int depth);

// sum * s - fact * q with the term of `fact` at `at` gone; s, q > 0 in lowest terms.
std::optional<Sum> eliminate(const Sum& sum, int64_t coefficient, const Sum& fact, int64_t fact_coefficient) {
  if ((coefficient < 0) != (fact_coefficient < 0)) return std::nullopt;
  const int64_t g = gcd(coefficient, fact_coefficient);
  Sum rest = sum;
  rest.scale(std::abs(fact_coefficient) / g);
  rest.add(fact, -(std::abs(coefficient) / g));
  return rest.overflow ? std::nullopt : std::optional(rest);
}

// Products i*m against a fact about i: the fact times m, where m >= 0.
bool by_scaled_fact(Knowledge& known, const Sum& sum, const Sum& fact, int depth) {
  for (const Term& t : sum.terms) {
    if (kind_of(t.factor) != kind<Mul>) continue;
    std::vector<Expr> factors;
    factors_of(t.factor, factors);
    for (size_t i = 0; i < factors.size(); ++i) {
      const int64_t f = fact.coefficient_of(factors[i]);
      if (f == 0 || (f < 0) != (t.coefficient < 0)) continue;
      std::vector<Expr> others = factors;
      others.erase(others.begin() + static_cast<ptrdiff_t>(i));
      const bool positive =
          std::all_of(others.begin(), others.end(), [&](const Expr& e) { return bound_of(known, e).min_value >= 0; });
      if (!positive) continue;
      const Expr by = product_of(known, others);
      Sum scaled{.dtype = fact.dtype};
      if (fact.constant) scaled.add(by, fact.constant);
      for (const Term& u : fact.terms) {
        std::vector<Expr> all = others;
        factors_of(u.factor, all);
        scaled.add(product_of(known, std::move(all)), u.coefficient);
      }
      const auto rest = eliminate(sum, t.coefficient, scaled, f);
      if (rest && prove_nonnegative(known, *rest, depth - 1)) return true;
    }
  }
  return false;
}

bool by_fact(Knowledge& known, const Sum& sum, const Sum& fact, int depth) {
  for (const Term& t : fact.terms) {
    const int64_t c = sum.coefficient_of(t.factor);
    if (c == 0) continue;
    const auto rest = eliminate(sum, c, fact, t.coefficient);
    if (rest && prove_nonnegative(known, *rest, depth - 1)) return true;
  }
  return by_scaled_fact(known, sum, fact, depth);
}

// What quotients, minima and maxima in the sum promise of themselves.
bool by_term(Knowledge& known, const Sum& sum, const Term& t, int depth) {
  Sum without = sum;
  without.add(t.factor, -t.coefficient);
  const auto instead = [&](const Expr& e) {
    Sum replaced = without;
    replaced.add(to_sum(known, e), t.coefficient);
    return !replaced.overflow && prove_nonnegative(known, replaced, depth - 1);
  };
  if (const auto* m = t.factor.as<Min>())
    return t.coefficient > 0 ? instead(m->a) && instead(m->b) : instead(m->a) || instead(m->b);
  if (const auto* m = t.factor.as<Max>())
    return t.coefficient < 0 ? instead(m->a) && instead(m->b) : instead(m->a) || instead(m->b);
  if (const auto* s = t.factor.as<Select>()) return instead(s->true_value) && instead(s->false_value);
  if (const auto* div = t.factor.as<FloorDiv>()) {
    const auto* c = div->b.as<IntImm>();
    if (!c || c->value <= 0) return false;
    // c*q <= x <= c*q + c - 1
    Sum fact = to_sum(known, div->a);
    fact.add(t.factor, -c->value);
    if (t.coefficient > 0) {
      fact.scale(-1);
      fact.add_constant(c->value - 1);
    }
    if (fact.overflow) return false;
    const auto rest = eliminate(sum, t.coefficient, fact, t.coefficient > 0 ? c->value : -c->value);
    return rest && prove_nonnegative(known, *rest, depth - 1);
  }
  if (const auto* mod = t.factor.as<FloorMod>()) {
    // 0 <= x % n < n for n > 0, with n symbolic; and x % n <= x for x >= 0.
    if (t.coefficient > 0 || mod->b.as<IntImm>()) return false;
    if (bound_of(known, mod->b).min_value > 0 && [&] {
          Sum replaced = without;
          replaced.add(to_sum(known, mod->b), t.coefficient);
          replaced.add_constant(-t.coefficient);
          return !replaced.overflow && prove_nonnegative(known, replaced, depth - 1);
        }())
      return true;
    return bound_of(known, mod->a).min_value >= 0 && instead(mod->a);
  }
  return false;
}

// f * T with f >= 0: T decides.
bool by_common_factor(Knowledge& known, const Sum& sum, int depth) {
  if (sum.constant != 0 || sum.terms.size() < 2) return false;
  std::vector<Expr> factors;
  factors_of(sum.terms[0].factor, factors);
  for (const Expr& f : factors) {
    if (bound_of(known, f).min_value < 0) continue;
    Sum multiples, rest;
    split_by(known, sum, f, multiples, rest);
    if (rest.terms.empty() && prove_nonnegative(known, multiples, depth)) return true;
  }
  return false;
}

// Quotients that are added are not negative where what they divide is not: where a tile begins is a sum of several.
bool by_quotients(Knowledge& known, const Sum& sum) {
  Sum rest = sum;
  std::vector<Expr> divided;
  for (const Term& t : sum.terms) {
    const auto* div = t.factor.as<FloorDiv>();
    const auto* c = div ? div->b.as<IntImm>() : nullptr;
    if (t.coefficient < 0 || !c || c->value <= 0 || bound_of(known, t.factor).min_value >= 0) continue;
    rest.add(t.factor, -t.coefficient);
    divided.push_back(div->a);
  }
  return !divided.empty() && !rest.overflow && bound_of(known, rest).min_value >= 0 &&
         std::all_of(divided.begin(), divided.end(),
                     [&](const Expr& e) { return prove_nonnegative(known, to_sum(known, e)); });
}

bool nonnegative_by_facts(Knowledge& known, const Sum& sum, int depth) {
  if (depth >= whole_depth && by_quotients(known, sum)) return true;
  if (by_common_factor(known, sum, depth)) return true;
  for (size_t i = known.facts.size(); i-- > 0;)
    if (by_fact(known, sum, known.facts[i], depth)) return true;
  for (const Term& t : sum.terms)
    if (by_term(known, sum, t, depth)) return true;
  return false;
}

}  // namespace

bool prove_nonnegative(Knowledge& known, const Sum& sum, int depth) {
  if (sum.overflow) return false;
  const ConstIntBound bound = bound_of(known, sum);
  if (bound.min_value >= 0) return true;
  if (bound.max_value < 0 || sum.terms.empty() || depth <= 0 || known.search_budget <= 0) return false;
  --known.search_budget;
  return nonnegative_by_facts(known, sum, depth);
}

void assume_nonnegative(Knowledge& known, Sum sum) {
  if (sum.overflow) return;
  if (sum.terms.empty()) {
    known.contradiction |= sum.constant < 0;
    return;
  }
  if (const int64_t g = sum.common_coefficient(); g > 1) {
    for (Term& t : sum.terms) t.coefficient /= g;
    sum.constant = floor_div(sum.constant, g);
  }
  if (sum.terms.size() == 1 && std::abs(sum.terms[0].coefficient) == 1) {
    // t + k >= 0 or k - t >= 0: a bound.
    const Term& t = sum.terms[0];
    const ConstIntBound bound =
        t.coefficient > 0 ? ConstIntBound{-sum.constant, plus_infinity} : ConstIntBound{minus_infinity, sum.constant};
    const ConstIntBound before = bound_of(known, t.factor);
    const ConstIntBound now = intersect(before, bound);
    if (now.min_value > now.max_value) {
      known.contradiction = true;
      return;
    }
    if (within(before, bound)) return;
    if (const auto* v = t.factor.as<VarNode>()) {
      VarFacts& facts = known.facts_of(Var(v));
      facts.bound = intersect(facts.bound, bound);
    } else {
      known.terms.push_back({t.factor, bound, {}});
    }
    known.new_epoch();
    return;
  }
  known.facts.push_back(std::move(sum));
  known.new_epoch();
}

Assumption::Assumption(Knowledge& known, const Expr& condition, bool truth)
    : known_(known), depth_(known.levels.size()) {
  known.enter();
  assume(known, condition, truth);
}

void assume(Knowledge& known, const Expr& condition, bool truth) {
  if (const auto value = as_int(condition)) {
    known.contradiction |= (*value != 0) != truth;
    return;
  }
  if (const auto* n = condition.as<Not>()) return assume(known, n->a, !truth);
  if (const auto* both = condition.as<And>(); both && truth) {
    assume(known, both->a, true);
    return assume(known, both->b, true);
  }
  if (const auto* either = condition.as<Or>(); either && !truth) {
    assume(known, either->a, false);
    return assume(known, either->b, false);
  }
  if (const auto* c = condition.as<Call>(); c && c->op == &intrinsic::likely) return assume(known, c->args[0], truth);

  known.truths.emplace_back(condition, truth);
  known.new_epoch();
  const auto difference = [&](const Expr& a, const Expr& b, int64_t k) {  // a - b + k
    Sum sum = to_sum(known, a);
    sum.add(to_sum(known, b), -1);
    sum.add_constant(k);
    return sum;
  };
  const auto order = [&](const Expr& a, const Expr& b, bool strict) {  // a < b or a <= b
    if (!is_index(known, a) || !is_index(known, b)) return;
    assume_nonnegative(known, truth ? difference(b, a, strict ? -1 : 0) : difference(a, b, strict ? 0 : -1));
  };
  const auto equal = [&](const Expr& a, const Expr& b, bool holds) {
    if (!is_index(known, a) || !is_index(known, b)) return;
    if (holds) {
      assume_nonnegative(known, difference(a, b, 0));
      assume_nonnegative(known, difference(b, a, 0));
    }
    // x % c == r: a modular set.
    const auto* mod = a.as<FloorMod>();
    const auto* r = b.as<IntImm>();
    const auto* c = mod ? mod->b.as<IntImm>() : nullptr;
    if (!holds || !c || !r || c->value <= 1) return;
    if (const auto* v = mod->a.as<VarNode>()) {
      VarFacts& facts = known.facts_of(Var(v));
      if (facts.set.coeff != 0 && c->value % facts.set.coeff == 0)
        facts.set = {c->value, floor_mod(r->value, c->value)};
    } else {
      known.terms.push_back({mod->a, {}, {c->value, floor_mod(r->value, c->value)}});
    }
    known.new_epoch();
  };
  switch (kind_of(condition)) {
    case kind<LT>:
      return order(as<LT>(condition).a, as<LT>(condition).b, true);
    case kind<LE>:
      return order(as<LE>(condition).a, as<LE>(condition).b, false);
    case kind<GT>:
      return order(as<GT>(condition).b, as<GT>(condition).a, true);
    case kind<GE>:
      return order(as<GE>(condition).b, as<GE>(condition).a, false);
    case kind<EQ>:
      return equal(as<EQ>(condition).a, as<EQ>(condition).b, truth);
    case kind<NE>:
      return equal(as<NE>(condition).a, as<NE>(condition).b, !truth);
    default:
      return;
  }
}

}  // namespace lathe::arith
