// Vectors whose lanes are base + lane * stride.
#pragma once

#include "ir/expr.h"

namespace lathe::codegen {

struct RampOf {
  ir::Expr base;
  int64_t stride;
};

// Nothing where the expression is none, or its stride is not known.
std::optional<RampOf> as_ramp(const ir::Expr& e);

}  // namespace lathe::codegen
