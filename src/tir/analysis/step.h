// How an index moves with a loop.
#pragma once

#include "arith/analyzer.h"

namespace lathe::tir {

// The change of `e` where `var` grows by one, where that is constant: how far it moves from one iteration to the next.
std::optional<int64_t> step_of(const ir::Expr& e, const ir::Var& var, arith::Analyzer& known);

}  // namespace lathe::tir
