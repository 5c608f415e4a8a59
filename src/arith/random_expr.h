// For tests: an independent evaluator of integer and bool expressions on given values of variables, and random
// expressions over given variables.
#pragma once

#include <random>

#include "arith/analyzer.h"

namespace lathe::arith {

using Bindings = std::unordered_map<const ir::VarNode*, int64_t>;

// The value of a scalar integer or bool expression; integers narrower than 64 bits wrap. Nothing where a division by
// zero is evaluated, an int64 overflows, or a kind has no value here.
std::optional<int64_t> evaluate(const ir::Expr& e, const Bindings& bindings);

// How an expression shows in a failure: "Add(x, 3)".
std::string show(const ir::Expr& e);

struct RandomExprs {
  std::mt19937_64 random;
  std::vector<ir::Var> vars;
  ir::DType dtype = ir::DType::int64();
  int64_t largest_constant = 20;

  int64_t below(int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); }
  ir::Expr integer(int depth);
  ir::Expr boolean(int depth);
};

}  // namespace lathe::arith
