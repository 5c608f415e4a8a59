// Digits of a number, as fused and split loops leave them in indices: base, base // n, base % n, (base // n) % m, …
#pragma once

#include "ir/expr.h"

namespace lathe::schedule {

using namespace ir;  // NOLINT: analyses are about expressions

// '/' or '%' and the divisor, innermost first.
using DigitSteps = std::vector<std::pair<char, Expr>>;

struct Digit {
  Expr base;
  DigitSteps steps;
};
Digit digit_of(const Expr& atom);
bool same_steps(const DigitSteps& a, const DigitSteps& b);

// Whether numbers that have the same digits are the same number; false where that is not seen. `below`: the numbers lie
// from 0 to there.
bool determine(const std::vector<DigitSteps>& digits, std::optional<int64_t> below = {});

}  // namespace lathe::schedule
