// Conditions taken apart.
#pragma once

#include "ir/expr.h"

namespace lathe::ir {

// The conditions that hold together where `predicate` does, from left to right; a null predicate has none.
std::vector<Expr> conjuncts(const Expr& predicate);

}  // namespace lathe::ir
