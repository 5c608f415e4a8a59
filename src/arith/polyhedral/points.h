// The third tier of proof: integer points of conditions over scalar expressions, decided by isl
// (Verdoolaege, "isl: An Integer Set Library for the Polyhedral Model", ICMS 2010) within a budget of its operations.
//
// Conditions are made of comparisons, `and`, `or` and `not` over quasi-affine expressions: sums, products with
// constants, floor quotients and remainders by positive constants, minima, maxima, selections. Everything else (a
// product of variables, a load, a call) stands for an integer of which nothing is known; equal ones without a load or
// call are one integer. So no point is ever missed, and a point that depends on such an integer is no proof of any.
#pragma once

#include <unordered_map>

#include "ir/expr.h"

namespace lathe::arith {

using ir::Expr;
using ir::Var;

// In isl's operations, of which some thousands take a millisecond.
struct PointBudget {
  uint64_t operations = 200'000;
};

struct PointSearch {
  enum Outcome : uint8_t {
    none,       // there is no such point
    found,      // `values` is one
    undecided,  // there is none, or it depends on `obstacle`, of which nothing is known
    spent       // the budget is used up
  } outcome = none;
  std::unordered_map<Var, int64_t> values;  // of every variable that is not hidden
  Expr obstacle;
};

// Looks for integers, one for each variable in `condition`, that make it true. Size variables are at least zero.
PointSearch find_point(const Expr& condition, PointBudget budget = {});

// The values of the other variables for which there are some of `hidden` that make `condition` true.
struct Projection {
  Expr condition;
  std::vector<Var> hidden;
};

// Looks for a point of `part` that is in none of `whole`; none: the whole covers the part.
PointSearch find_uncovered(const Projection& part, const std::vector<Projection>& whole, PointBudget budget = {});

}  // namespace lathe::arith
