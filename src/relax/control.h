// Control flow over functions of the module. Both operators are pure, so they stand in dataflow blocks like any other;
// their values are tuples. Lowering and the interpreter know these rows.
//
//   r = R.branch(condition, cls.then, (x, y), cls.otherwise, (z,), sinfo_args=[…])
//   r = R.loop(cls.body, trips, condition, (carried,), (captured,), sinfo_args=[…])
//
// What such a function needs of its caller are parameters: tensors, and the caller's symbols as an R.Shape.
#pragma once

#include "relax/operator.h"

namespace lathe::relax {

// Calls the function that a scalar bool tensor chooses; its value is that function's results, as `sinfo_args` says.
extern const Operator branch_operator;

// while (i < trips and condition):
//   condition, carried…, rows… = body(i, condition, carried…, captured…);  i += 1
// where i is a scalar of int64. Without `trips` there is no bound, without `condition` it is true at first. Its value
// is the carried values as the last turn left them, then each turn's rows stacked along a new first axis; `sinfo_args`
// says what is carried, and what one row is. Of no turns the rows' extents are those of `sinfo_args`, 0 where it has
// none.
extern const Operator loop_operator;

// A function called with arguments.
struct Callee {
  std::string function;
  std::vector<Expr> args;
};

struct Branch {
  Expr condition;
  Callee then, otherwise;
};
std::optional<Branch> as_branch(const Expr& e);

struct Loop {
  std::string body;
  Expr trips, condition;  // may be null
  std::vector<Expr> carried, captured;
  std::vector<StructInfo> results;  // of what is carried, which may say less than of `carried`, then of one row each
};
std::optional<Loop> as_loop(const Expr& e);

// Calls with struct info; `origin` is the place of failures.
Result<Expr> make_branch(const Branch& branch, std::vector<StructInfo> results, ir::Origin origin = {});
Result<Expr> make_loop(const Loop& loop, ir::Origin origin = {});

// The functions of the module that an expression calls: callees of calls, of branches and of loops.
std::vector<std::string> called_functions(const Expr& e);

}  // namespace lathe::relax
