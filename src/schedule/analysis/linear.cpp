#include "schedule/analysis/linear.h"

#include "arith/analyzer.h"
#include "ir/visit.h"

namespace lathe::schedule {

void Linear::add(const Expr& atom, int64_t coefficient) {
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!structural_equal(terms[i].atom, atom)) continue;
    terms[i].coefficient += coefficient;
    if (terms[i].coefficient == 0) terms.erase(terms.begin() + static_cast<ptrdiff_t>(i));
    return;
  }
  if (coefficient != 0) terms.push_back({atom, coefficient});
}

void Linear::add(const Linear& other, int64_t scale) {
  for (const Term& term : other.terms) add(term.atom, term.coefficient * scale);
  constant += other.constant * scale;
}

Linear Linear::extract(const std::function<bool(const Expr&)>& chosen) {
  Linear taken;
  std::vector<Term> rest;
  for (Term& term : terms) (chosen(term.atom) ? taken.terms : rest).push_back(std::move(term));
  terms = std::move(rest);
  return taken;
}

Expr Linear::expr() const {
  Expr sum;
  for (const Term& term : terms) {
    if (term.coefficient < 0 && sum) {
      const Expr part = term.coefficient == -1 ? term.atom : term.atom * -term.coefficient;
      sum = sum - part;
      continue;
    }
    const Expr part = term.coefficient == 1 ? term.atom : term.atom * term.coefficient;
    sum = sum ? sum + part : part;
  }
  if (!sum) return int64(constant);
  if (constant < 0) return sum - constant * -1;
  return constant == 0 ? sum : sum + constant;
}

bool operator==(const Linear& a, const Linear& b) {
  Linear difference = a;
  difference.add(b, -1);
  return difference.is_constant() && difference.constant == 0;
}

namespace {

// Products past this are left as atoms: nothing here may overflow.
constexpr int64_t largest = int64_t{1} << 40;

bool small(const Linear& sum, int64_t scale) {
  if (std::abs(scale) > largest || std::abs(sum.constant) > largest) return false;
  for (const Linear::Term& term : sum.terms)
    if (std::abs(term.coefficient) > largest / std::max<int64_t>(1, std::abs(scale))) return false;
  return std::abs(sum.constant) <= largest / std::max<int64_t>(1, std::abs(scale));
}

}  // namespace

Linear linear(const Expr& e) {
  Linear sum;
  if (const auto value = as_int(e); value && std::abs(*value) <= largest) {
    sum.constant = *value;
  } else if (const auto* add = e.as<Add>()) {
    sum = linear(add->a);
    sum.add(linear(add->b));
  } else if (const auto* sub = e.as<Sub>()) {
    sum = linear(sub->a);
    sum.add(linear(sub->b), -1);
  } else if (const auto* mul = e.as<Mul>()) {
    Linear a = linear(mul->a), b = linear(mul->b);
    if (a.is_constant()) std::swap(a, b);
    if (b.is_constant() && small(a, b.constant)) {
      sum.add(a, b.constant);
    } else if (!b.is_constant() && (a.terms.size() > 1 || a.constant != 0) && small(a, 1)) {
      // (x + 2) * n: distribute over the first sum, so that products with a symbol meet.
      for (const Linear::Term& term : a.terms) sum.add(linear(term.atom * mul->b), term.coefficient);
      sum.add(linear(b.expr()), a.constant);
    } else {
      sum.add(e, 1);
    }
  } else {
    sum.add(e, 1);
  }
  return sum;
}

std::optional<int64_t> difference(const Expr& a, const Expr& b) {
  Linear sum = linear(a);
  sum.add(linear(b), -1);
  if (sum.is_constant()) return sum.constant;
  return as_int(arith::Analyzer().simplify(sum.expr()));
}

bool same(const Expr& a, const Expr& b) { return difference(a, b) == 0; }

Domains domains_of(const std::vector<const For*>& loops) {
  Domains domains;
  for (const For* loop : loops)
    domains[loop->loop_var] = {loop->min, (Linear(linear(loop->min + loop->extent - 1))).expr()};
  return domains;
}

bool mentions(const Expr& e, const Domains& domains) {
  bool found = false;
  pre_order(e, [&](const NodeRef& n) {
    if (const auto* v = n.as<VarNode>()) found = found || domains.count(Var(v)) != 0;
    return !found;
  });
  return found;
}

namespace {

std::optional<Interval> of_atom(const Expr& e, const Domains& domains, bool& exact) {
  if (!mentions(e, domains)) return Interval{e, e};
  if (const auto* v = e.as<VarNode>()) {
    const Interval& domain = domains.at(Var(v));
    // A domain may itself depend on other variables that range.
    bool inner = true;
    const auto low = interval(domain.low, domains, &inner), high = interval(domain.high, domains, &inner);
    if (!low || !high) return std::nullopt;
    if (mentions(domain.low, domains) || mentions(domain.high, domains)) exact = false;
    return Interval{low->low, high->high};
  }
  if (const auto* quotient = e.as<FloorDiv>()) {
    const auto divisor = as_int(quotient->b);
    const auto range = interval(quotient->a, domains, &exact);
    if (!range || mentions(quotient->b, domains) || (divisor && *divisor <= 0)) return std::nullopt;
    if (!divisor && !(quotient->b.is<VarNode>() && quotient->b.as<VarNode>()->is_size)) return std::nullopt;
    arith::Analyzer analyzer;
    return Interval{analyzer.simplify(floordiv(range->low, quotient->b)),
                    analyzer.simplify(floordiv(range->high, quotient->b))};
  }
  if (const auto* remainder = e.as<FloorMod>()) {
    if (mentions(remainder->b, domains)) return std::nullopt;
    const auto divisor = as_int(remainder->b);
    const auto range = interval(remainder->a, domains, &exact);
    if (divisor && *divisor > 0 && range) {
      arith::Analyzer analyzer;
      const Expr low = analyzer.simplify(floordiv(range->low, remainder->b));
      const Expr high = analyzer.simplify(floordiv(range->high, remainder->b));
      if (same(low, high))  // within one period
        return Interval{analyzer.simplify(floormod(range->low, remainder->b)),
                        analyzer.simplify(floormod(range->high, remainder->b))};
      const auto width = difference(range->high, range->low);
      if (!width || *width + 1 < *divisor) exact = false;
      return Interval{int64(0), int64(*divisor - 1)};
    }
    if (divisor) return std::nullopt;
    exact = false;
    return Interval{int64(0), Linear(linear(remainder->b - 1)).expr()};
  }
  exact = false;
  if (const auto* smaller = e.as<Min>()) {
    const auto a = interval(smaller->a, domains), b = interval(smaller->b, domains);
    if (!a || !b) return std::nullopt;
    return Interval{min(a->low, b->low), min(a->high, b->high)};
  }
  if (const auto* larger = e.as<Max>()) {
    const auto a = interval(larger->a, domains), b = interval(larger->b, domains);
    if (!a || !b) return std::nullopt;
    return Interval{max(a->low, b->low), max(a->high, b->high)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Interval> interval(const Expr& e, const Domains& domains, bool* exact) {
  bool dense = true;
  const Linear sum = linear(e);
  Linear low, high;
  low.constant = high.constant = sum.constant;
  // Exact when the coefficients, in increasing order, never step over a gap: 1, then at most the width so far plus 1.
  std::vector<std::pair<int64_t, int64_t>> steps;  // coefficient, width
  for (const Linear::Term& term : sum.terms) {
    bool atom_exact = true;
    const auto range = of_atom(term.atom, domains, atom_exact);
    if (!range) return std::nullopt;
    dense = dense && atom_exact;
    low.add(linear(term.coefficient > 0 ? range->low : range->high), term.coefficient);
    high.add(linear(term.coefficient > 0 ? range->high : range->low), term.coefficient);
    if (mentions(term.atom, domains)) {
      const auto width = difference(range->high, range->low);
      // A width that is not known can only be the outermost step.
      steps.emplace_back(std::abs(term.coefficient), width ? *width : std::numeric_limits<int64_t>::max());
    }
  }
  for (const auto& [variable, domain] : domains) {
    const auto count = std::count_if(sum.terms.begin(), sum.terms.end(),
                                     [&](const Linear::Term& term) { return uses_var(term.atom, variable); });
    if (count > 1) dense = false;  // the terms move together
  }
  std::sort(steps.begin(), steps.end());
  int64_t reach = 1;
  for (const auto& [coefficient, width] : steps) {
    if (width == 0) continue;
    if (coefficient > reach) dense = false;
    if (width == std::numeric_limits<int64_t>::max() || reach > largest)
      reach = std::numeric_limits<int64_t>::max() / 2;
    else
      reach += coefficient * width;
  }
  if (exact) *exact = *exact && dense;
  return Interval{low.expr(), high.expr()};
}

std::optional<std::pair<int64_t, int64_t>> constant_interval(const Linear& sum, const Domains& domains) {
  const auto range = interval(sum.expr(), domains);
  if (!range) return std::nullopt;
  arith::Analyzer analyzer;
  const auto low = as_int(analyzer.simplify(range->low)), high = as_int(analyzer.simplify(range->high));
  if (!low || !high) return std::nullopt;
  return std::pair{*low, *high};
}

}  // namespace lathe::schedule
