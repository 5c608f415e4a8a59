// The text form of tensor programs, both ways (the vocabulary of TVMScript's `T`).
#pragma once

#include "script/dialect.h"
#include "tir/stmt.h"

namespace lathe::tir {

const script::Dialect& script_dialect();

// A function, or a statement alone, as text.
std::string function_text(const Function& function, const std::string& name = "main");
std::string statement_text(const Stmt& s);

// A module of tensor programs as a script, and in which line (from 1) of it each statement of each function begins.
struct TextWithLines {
  using Lines = std::unordered_map<const Node*, uint32_t>;
  std::string text;
  std::map<std::string, Lines> lines;  // by the function's name; the function's own is its `def`
};
TextWithLines text_with_lines(const ir::IRModule& module);

// The lines of a function's text around the statements: two before and after each, its own marked with ">".
std::string excerpt(const Function& function, const std::string& name, const std::vector<const Node*>& statements);

}  // namespace lathe::tir
