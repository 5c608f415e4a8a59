// The operators that Lathe knows: one constant each, listed in ops.def.
#pragma once

#include "relax/attributes.h"
#include "relax/infer.h"
#include "relax/operator.h"

namespace lathe::ops {

using relax::Operator;

#define LATHE_OP(SYMBOL) extern const Operator SYMBOL;
#include "ops/ops.def"
#undef LATHE_OP

// All rows of ops.def and those that relax defines.
const relax::OperatorTable& default_operators();

}  // namespace lathe::ops
