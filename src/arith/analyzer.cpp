#include "arith/analyzer.h"

#include "arith/interval.h"
#include "arith/knowledge.h"
#include "ir/visit.h"

namespace lathe::arith {

using namespace ir;

Analyzer::Analyzer() : known_(std::make_unique<Knowledge>()) {}
Analyzer::~Analyzer() = default;

namespace {

// A variable bound anew: what was known of it is no longer so.
void forget(Knowledge& known, const Var& var) {
  if (!known.find(var.get())) return;
  known.facts_of(var) = {};
  for (Sum& fact : known.facts)
    for (const Term& t : fact.terms)
      if (uses_var(t.factor, var)) {
        fact = {};
        break;
      }
  for (TermFacts& facts : known.terms)
    if (uses_var(facts.term, var)) facts = {facts.term, {}, {}};
  for (auto& [condition, truth] : known.truths)
    if (uses_var(condition, var)) condition = boolean(truth);
  known.new_epoch();
}

void refill(Knowledge& known) {
  known.budget = Knowledge::budget_per_query;
  known.search_budget = Knowledge::sum_steps_per_query;
}

}  // namespace

void Analyzer::bind(const Var& var, const Range& range) {
  refill(*known_);
  if (is_int(range.extent, 1)) return bind(var, range.min);
  const Expr low = arith::simplify(*known_, range.min);
  const Expr high = arith::simplify(*known_, sub(add(range.min, range.extent), constant(var->dtype, int64_t{1})));
  forget(*known_, var);
  const ConstIntBound from = bound_of(*known_, low);
  ConstIntBound to = bound_of(*known_, high);
  // Of one value at most: where it took the variable's place, nothing would say that there is one.
  if (from.min_value == to.max_value && finite(to) && !as_int(range.extent)) ++to.max_value;
  known_->facts_of(var).bound = {from.min_value, to.max_value};
  known_->new_epoch();
  if (!is_index(*known_, var)) return;
  const auto fact = [&](const Expr& upper, const Expr& lower) {
    Sum sum = to_sum(*known_, upper);
    sum.add(to_sum(*known_, lower), -1);
    if (sum.terms.size() > 1) assume_nonnegative(*known_, std::move(sum));
  };
  fact(var, low);
  fact(high, var);
}

void Analyzer::bind(const Var& var, const Expr& value) {
  refill(*known_);
  const Expr simple = arith::simplify(*known_, value);
  forget(*known_, var);
  known_->facts_of(var).value = simple;
  known_->new_epoch();
}

void Analyzer::update(const Var& var, ConstIntBound bound) {
  VarFacts& facts = known_->facts_of(var);
  facts.bound = intersect(facts.bound, bound);
  known_->new_epoch();
}

void Analyzer::update(const Var& var, ModularSet set) {
  VarFacts& facts = known_->facts_of(var);
  // Of two sets the finer one: one that the other's modulus divides says more.
  if (facts.set.coeff == 1 || set.coeff == 0 || (facts.set.coeff != 0 && set.coeff % facts.set.coeff == 0))
    facts.set = set.coeff ? ModularSet{set.coeff, floor_mod(set.base, set.coeff)} : set;
  known_->new_epoch();
}

Analyzer::Scope::Scope(Analyzer& analyzer) : analyzer_(analyzer), depth_(analyzer.known_->levels.size()) {
  analyzer.known_->enter();
}
Analyzer::Scope::~Scope() { analyzer_.known_->leave(depth_); }

Analyzer::Constraint::Constraint(Analyzer& analyzer, const Expr& condition)
    : analyzer_(analyzer), depth_(analyzer.known_->levels.size()) {
  Knowledge& known = *analyzer.known_;
  refill(known);
  const Expr simple = arith::simplify(known, condition);
  known.enter();
  assume(known, simple, true);
}

Analyzer::Constraint::~Constraint() { analyzer_.known_->leave(depth_); }

Expr Analyzer::simplify(const Expr& e) {
  refill(*known_);
  return arith::simplify(*known_, e);
}

Expr Analyzer::simplify_value(const Expr& e) {
  refill(*known_);
  const InPosition position(*known_, true);
  return arith::simplify(*known_, e);
}

ConstIntBound Analyzer::const_int_bound(const Expr& e) {
  refill(*known_);
  const ConstIntBound bound = bound_of(*known_, e);
  if (is_point(bound) || !e->dtype.is_scalar() || !e->dtype.is_integer()) return bound;
  // The simplified form may say more: terms that occur twice have met.
  return intersect(bound, bound_of(*known_, arith::simplify(*known_, e)));
}

ModularSet Analyzer::modular_set(const Expr& e) {
  refill(*known_);
  return set_of(*known_, arith::simplify(*known_, e));
}

bool Analyzer::can_prove(const Expr& condition) {
  refill(*known_);
  return is_int(arith::simplify(*known_, condition), 1);
}

bool Analyzer::can_prove_equal(const Expr& a, const Expr& b) {
  if (a.same_as(b)) return true;
  if (a->dtype != b->dtype) return false;
  refill(*known_);
  const Expr x = arith::simplify(*known_, a), y = arith::simplify(*known_, b);
  if (same(x, y)) return true;
  return is_int(arith::simplify(*known_, eq(x, y)), 1);
}

bool Analyzer::can_prove_less(const Expr& a, int64_t bound) {
  if (bound_of(*known_, a).max_value < bound) return true;
  return can_prove(lt(a, constant(a->dtype, bound)));
}

bool Analyzer::can_prove_greater_equal(const Expr& a, int64_t bound) {
  if (bound_of(*known_, a).min_value >= bound) return true;
  return can_prove(ge(a, constant(a->dtype, bound)));
}

}  // namespace lathe::arith
