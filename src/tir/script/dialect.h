// The text form of tensor programs, both ways (the vocabulary of TVMScript's `T`).
#pragma once

#include "script/dialect.h"
#include "tir/stmt.h"

namespace lathe::tir {

const script::Dialect& script_dialect();

// A function, or a statement alone, as text.
std::string function_text(const Function& function, const std::string& name = "main");
std::string statement_text(const Stmt& s);

// The lines of a function's text around the statements: two before and after each, its own marked with ">".
std::string excerpt(const Function& function, const std::string& name, const std::vector<const Node*>& statements);

}  // namespace lathe::tir
