// Expressions as linear forms of given variables.
#pragma once

#include "arith/analyzer.h"

namespace lathe::arith {

// sum of coefficients[i] * vars[i], plus rest; neither coefficients nor rest mention the variables.
struct LinearForm {
  std::vector<Expr> coefficients;
  Expr rest;

  // The coefficient of variable `i` where it is a constant.
  std::optional<int64_t> constant_coefficient(size_t i) const { return ir::as_int(coefficients[i]); }
};

// The expression as a linear form of `vars`, or nothing: a variable occurs in a product with another one, under a
// quotient, or in a load.
std::optional<LinearForm> linear_coefficients(const Expr& e, std::span<const Var> vars, Analyzer& analyzer);

}  // namespace lathe::arith
