// Sum: an integer expression as constant + coefficients times terms; the canonical form that like terms meet in.
// Internal to the room.
#pragma once

#include "arith/terms.h"

namespace lathe::arith {

struct Knowledge;

struct Term {
  Expr factor;  // no sum, no constant; a product has its factors in the order of `compare`
  int64_t coefficient = 1;
};

struct Sum {
  DType dtype = DType::int64();
  std::vector<Term> terms;
  int64_t constant = 0;
  bool overflow = false;  // a coefficient did not fit: the sum means nothing

  bool is_constant() const { return terms.empty() && !overflow; }
  // Past this a sum gives up, far from where int64 does.
  static constexpr int64_t limit = int64_t{1} << 61;
  static bool fits(int64_t x) { return -limit <= x && x <= limit; }
  void add_constant(int64_t c) { overflow |= !checked_add(constant, c, constant) || !fits(constant); }
  // Adds coefficient * factor, to the like term where there is one.
  void add(const Expr& factor, int64_t coefficient);
  void add(const Sum& other, int64_t scale = 1);
  void scale(int64_t factor);
  // The greatest common divisor of the coefficients; 0 for none.
  int64_t common_coefficient() const;
  int64_t coefficient_of(const Expr& factor) const;
};

// A simplified expression as a sum. Products of sums are multiplied out while they stay small.
Sum to_sum(Knowledge& known, const Expr& e);
// The sum as an expression: like terms merged, quotients and remainders of one dividend joined (`(x//c)*c + x%c` is x),
// symbolic factors taken out, terms in a fixed order. `original`, if given, is returned where it is already that.
Expr to_expr(Knowledge& known, Sum sum, const Expr& original = {});
// The factors of a product.
void factors_of(const Expr& e, std::vector<Expr>& out);
Expr product_of(Knowledge& known, std::vector<Expr> factors);

}  // namespace lathe::arith
