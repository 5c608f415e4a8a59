// What does nothing, taken out of statements.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir {

// `s` without loops, branches and bindings around nothing, and without stores of what is there already; nop() where
// nothing is left.
Stmt without_no_ops(Stmt s);

}  // namespace lathe::tir
