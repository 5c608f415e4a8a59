// Intervals with symbolic ends: the values that an expression takes while some variables range over their domains.
// Used for the regions that a loop nest touches, and for inferring bounds.
#pragma once

#include "arith/analyzer.h"

namespace lathe::arith {

// Variables and the ranges they run over, outermost first; a later range may mention earlier variables.
using Domain = std::vector<std::pair<Var, Range>>;

// The closed interval [min, max]; a null end is unbounded. Of an empty domain nothing is promised.
struct Interval {
  Expr min, max;

  static Interval point(const Expr& e) { return {e, e}; }
  static Interval everything() { return {}; }
  static Interval of(const Range& range);
  bool bounded() const { return min && max; }
  // [min, min + extent) of a bounded interval, simplified.
  Range range(Analyzer& analyzer) const;
};

// An interval that holds every value of `e` while the domain's variables run over it; its ends do not mention them.
// Tight for sums of terms of different variables; variables that occur twice may widen it.
Interval evaluate_interval(const Expr& e, const Domain& domain, Analyzer& analyzer);
// The interval hull of both.
Interval unite(const Interval& a, const Interval& b, Analyzer& analyzer);
// The values that are in both.
Interval intersect(const Interval& a, const Interval& b, Analyzer& analyzer);

}  // namespace lathe::arith
