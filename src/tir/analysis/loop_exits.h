// Loops that are left before their end: T.break_loop and T.continue_loop belong to the innermost loop around them.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir {

// Whether it is Evaluate(T.break_loop()) or Evaluate(T.continue_loop()).
bool is_loop_exit(const Stmt& s, const Intrinsic& which);
bool is_loop_exit(const Stmt& s);

// Whether some of these belong to a loop with this body.
bool has_loop_exits(const Stmt& body);
bool has_loop_exits(const Stmt& body, const Intrinsic& which);
// Whether some loop under the statement, or this one, is left so.
bool leaves_loops(const Stmt& s);

}  // namespace lathe::tir
