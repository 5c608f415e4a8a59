// Analyzer: what is known about integer expressions under bindings and constraints.
//
// int64 expressions are indices: mathematical integers that never wrap (DESIGN, decision 3). Integers of every other
// width, and floats, are values: integers wrap, and floats are IEEE, in all that is done with them. For an int64
// expression that computes data (a stored value, not a subscript) use `simplify_value`: there int64 arithmetic on
// loads, calls and conversions wraps too, and only arithmetic on variables and constants alone is an index's.
// A division by zero has no value, so nothing is promised of it.
#pragma once

#include <limits>

#include "ir/build.h"

namespace lathe::arith {

using ir::Expr;
using ir::Range;
using ir::Var;

// A closed interval; the extremes of int64 stand for no bound.
struct ConstIntBound {
  static constexpr int64_t negative_infinity = std::numeric_limits<int64_t>::min();
  static constexpr int64_t positive_infinity = std::numeric_limits<int64_t>::max();
  int64_t min_value = negative_infinity;
  int64_t max_value = positive_infinity;
};

// Every value is base modulo coeff; coeff 0: the constant base.
struct ModularSet {
  int64_t coeff = 1;
  int64_t base = 0;
};

struct Knowledge;  // arith/knowledge.h

class Analyzer {
 public:
  Analyzer();
  ~Analyzer();
  Analyzer(const Analyzer&) = delete;
  Analyzer& operator=(const Analyzer&) = delete;

  // `var` lies in `range` (also a loop variable's domain), or equals `value`.
  void bind(const Var& var, const Range& range);
  void bind(const Var& var, const Expr& value);
  // Adds knowledge for a variable without replacing what is known (a symbol's range, divisibility).
  void update(const Var& var, ConstIntBound bound);
  void update(const Var& var, ModularSet set);

  // Bindings and updates made while it lives are forgotten with it.
  class Scope {
   public:
    explicit Scope(Analyzer& analyzer);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    Analyzer& analyzer_;
    size_t depth_;
  };

  // Assumes `condition` while the returned guard lives.
  class Constraint {
   public:
    explicit Constraint(Analyzer& analyzer, const Expr& condition);
    ~Constraint();
    Constraint(const Constraint&) = delete;

   private:
    Analyzer& analyzer_;
    size_t depth_;
  };

  // An equal expression in simpler form: rules (arith/rules), then canonical sums. Loads and calls are opaque terms.
  Expr simplify(const Expr& e);
  // As `simplify`, for an expression in a value's position (see above).
  Expr simplify_value(const Expr& e);
  ConstIntBound const_int_bound(const Expr& e);
  ModularSet modular_set(const Expr& e);
  // Whether a bool expression always holds; false: could not be shown.
  bool can_prove(const Expr& condition);
  bool can_prove_equal(const Expr& a, const Expr& b);
  bool can_prove_less(const Expr& a, int64_t bound);           // a < bound
  bool can_prove_greater_equal(const Expr& a, int64_t bound);  // a >= bound

  // For this room's own files.
  Knowledge& knowledge() { return *known_; }

 private:
  std::unique_ptr<Knowledge> known_;
};

}  // namespace lathe::arith
