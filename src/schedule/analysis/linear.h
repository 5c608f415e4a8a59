// Index expressions as sums: coefficients times atoms, plus a constant. An atom is a variable, or an expression that is
// no sum (a floordiv, a product with a symbol, a load).
#pragma once

#include <functional>
#include <unordered_map>

#include "schedule/program.h"

namespace lathe::schedule {

struct Linear {
  struct Term {
    Expr atom;
    int64_t coefficient;
  };
  std::vector<Term> terms;  // different atoms, no zero coefficients, in order of first occurrence
  int64_t constant = 0;

  void add(const Expr& atom, int64_t coefficient);
  void add(const Linear& other, int64_t scale = 1);
  bool is_constant() const { return terms.empty(); }
  // The terms whose atom satisfies `chosen` go into the result; the rest, and the constant, stay.
  Linear extract(const std::function<bool(const Expr&)>& chosen);
  Expr expr() const;
  friend bool operator==(const Linear& a, const Linear& b);
};

// The sum that `e` is; integers are mathematical here.
Linear linear(const Expr& e);
// `a - b`, when that is a constant.
std::optional<int64_t> difference(const Expr& a, const Expr& b);
bool same(const Expr& a, const Expr& b);

// What a variable may be: from `low` to `high`, both included.
struct Interval {
  Expr low, high;
};
using Domains = std::unordered_map<Var, Interval>;
Domains domains_of(const std::vector<const For*>& loops);

// The smallest interval that this analysis can give for `e` while the variables in `domains` take all their values;
// nothing where it cannot. Bounds may mention other variables. `exact`, when given, is set to false where the interval
// holds values that `e` does not take.
std::optional<Interval> interval(const Expr& e, const Domains& domains, bool* exact = nullptr);
// The same with constant bounds.
std::optional<std::pair<int64_t, int64_t>> constant_interval(const Linear& sum, const Domains& domains);

bool mentions(const Expr& e, const Domains& domains);

}  // namespace lathe::schedule
