// Tensor programs without blocks and lets: loops, conditions and stores, the form in which any program is reversed.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir {

struct PlainStatement {
  Stmt statement;                 // For, IfThenElse, BufferStore, SeqStmt and Evaluate only
  std::vector<Buffer> temporary;  // what it needs to keep its own values in
};

// The statement with the variables of blocks replaced by their values and inits under conditions. What a let names
// stands where it is used; where its operands change meanwhile, or it is long, it is kept in a buffer of one element,
// as is a condition whose operands the branches change. What has no such form is a DiagnosticError, tir-no-gradient.
PlainStatement plain_statement(const Stmt& s);

// Whether `e` reads a buffer that `s` stores to.
bool reads_what_is_stored(const Expr& e, const Stmt& s);

}  // namespace lathe::tir
