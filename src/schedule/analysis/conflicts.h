// The third tier of proof asked about a schedule: whether two instances of statements touch one
// element, one of them writing, in an order that matters. It is slow (up to milliseconds) and exact where indices,
// domains and conditions are quasi-affine; the tiers of schedule/analysis/dependence.h are asked before.
#pragma once

#include "arith/polyhedral/points.h"
#include "schedule/analysis/proofs.h"

namespace lathe::schedule {

// One instance: where it is, by the loops it is in.
struct Instance {
  Access access;
  std::vector<std::pair<std::string, int64_t>> at;
};

// Two instances that touch one element, where `outcome` is found. Where it is undecided, what is touched depends on
// `obstacle`.
struct Conflict {
  arith::PointSearch::Outcome outcome = arith::PointSearch::none;
  Instance first, second;
  std::vector<int64_t> element;
  std::vector<std::pair<std::string, int64_t>> shared;  // what both have: loops around them, symbols
  Expr obstacle;                                        // of undecided

  explicit operator bool() const { return outcome != arith::PointSearch::none; }
  // Why iterations of `loop` ("loop 'i'") may not change their order, or that the proof's budget is spent.
  std::string reason(const std::string& loop, const Buffer& buffer) const;
  // The two instances as notes, "block 'step' writes A[1, 0] where t = 0, i = 0"; or what is not known, or that the
  // budget is spent.
  void explain(Diagnostic& problem) const;
};

// Which pairs of instances count: the condition over the values of the loops of `moving` (and of inner loops) at the
// first and at the second instance, as maps from their variables.
using PairCondition = support::function_ref<Expr(const Access& first, const VarMap& at_first, const Access& second,
                                                 const VarMap& at_second)>;

// All pairs.
inline constexpr auto any_pair = [](const Access&, const VarMap&, const Access&, const VarMap&) {
  return boolean(true);
};

// Looks for a conflict between an access of `firsts` and one of `seconds` (all of one buffer, below the loops `moving`,
// outermost first) among the pairs that count and of which one writes. `around` has the ranges of variables that both
// instances share.
using AccessList = std::vector<const Access*>;
Conflict find_conflict(const AccessList& firsts, const AccessList& seconds, const std::vector<const For*>& moving,
                       const Ranges& around, PairCondition counts);

// The loops' variables are in their ranges.
Expr in_range(const std::vector<const For*>& loops);

// The instance of `a` at its place comes before that of `b` at its: in an earlier iteration of the loops that both are
// in, or in the same and earlier in the program.
Expr comes_before(const Access& a, const VarMap& at_a, const Access& b, const VarMap& at_b);
// The loops' iteration `a` comes before `b`: lexicographically less.
Expr comes_before(const std::vector<const For*>& loops, const VarMap& a, const VarMap& b);

}  // namespace lathe::schedule
