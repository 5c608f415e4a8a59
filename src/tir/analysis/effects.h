// What evaluating an expression does besides giving a value: what a pass must know to move, share or drop it.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir {

// Whether the call only tells the machine what may come: it touches no memory, whatever its arguments name.
bool is_hint(const Call& call);

// What an expression, with all that it holds, may do.
struct Effects {
  bool updates = false;  // changes memory or state: has to happen where, and as often as, it is written
  bool reads = false;    // gives what memory or state holds
  bool fails = false;    // may have no value: an element that is not there, a division by zero
};
Effects effects_of(const NodeRef& root);

// Whether nothing but its value comes of it: where that is not used, it can be left out.
bool only_gives_a_value(const NodeRef& root);
// Whether it has a value wherever its variables have one, the same each time: it may be evaluated anywhere.
bool is_total(const NodeRef& root);

// The memory that is written under `s`, by the variables of its addresses; `anything` where a call may write what no
// store names.
struct Writes {
  std::unordered_set<const VarNode*> memory;
  bool anything = false;
};
Writes writes_of(const Stmt& s);
// Whether one of the loads in `e` reads memory that is written.
bool reads_written(const Expr& e, const Writes& writes);

}  // namespace lathe::tir
