// The syntax tree of a script: Python's expressions, and the statements that dialects give a meaning.
#pragma once

#include <deque>

#include "script/token.h"

namespace lathe::script::syntax {

enum class ExprKind : uint8_t {
  name,           // text
  integer,        // text: as written, without underscores
  floating,       // text
  string,         // text: decoded
  bytes,          // text
  formatted,      // an f-string; text: its inside
  constant,       // text: True, False, None or ...
  tuple,          // items
  list,           // items
  set,            // items
  dict,           // items: key, value, key, value, …; a null key for `**value`
  unary,          // text: + - ~ not; items: operand
  binary,         // text: the operator; items: left, right
  logical,        // text: and, or; items: operands
  compare,        // items: operands; labels: the operators between them
  call,           // items: callee, arguments; labels: one an argument, "" by position, "**" a mapping, else its name
  attribute,      // items: object; text: name
  subscript,      // items: object, index (a tuple where there are commas)
  slice,          // items: start, stop, step; null where absent
  conditional,    // items: condition, value, other value
  lambda,         // labels: parameters; items: body, then one default a parameter (null: none)
  comprehension,  // text: list, set, dict, generator; items with labels: element, value, for, in, if
  starred,        // items: value
  named,          // target := value; text: the target; items: value
};

struct Expr {
  ExprKind kind = ExprKind::constant;
  uint32_t begin = 0, end = 0;
  uint32_t depth = 1;  // of nesting; the left operands of a chain of binary operators do not nest
  std::string text;
  std::vector<const Expr*> items;
  std::vector<std::string> labels;
};

enum class StmtKind : uint8_t {
  function,   // name, decorators, parameters, value (the result's annotation), body
  class_,     // name, decorators, body
  for_,       // target, value (iterable), body, other
  while_,     // value (condition), body, other
  with,       // contexts, body
  if_,        // value (condition), body, other
  assign,     // targets, value
  augmented,  // target, name (the operator), value
  annotated,  // target, annotation, value or null
  assert_,    // value, message or null
  return_,    // value or null
  pass,
  break_,
  continue_,
  expression,  // value
  import_,     // imports
};

struct Parameter {
  std::string name;
  uint32_t begin = 0, end = 0;
  const Expr* annotation = nullptr;
  const Expr* default_value = nullptr;
};

struct Import {
  std::string path;   // "lathe.script.tir"
  std::string alias;  // the name it binds
};

struct Stmt {
  StmtKind kind = StmtKind::pass;
  uint32_t begin = 0, end = 0;  // of the whole statement
  uint32_t head_end = 0;        // end of its first line
  std::string name;
  std::vector<const Expr*> decorators;
  std::vector<Parameter> parameters;
  const Expr* target = nullptr;
  std::vector<const Expr*> targets;
  const Expr* annotation = nullptr;
  const Expr* value = nullptr;
  const Expr* message = nullptr;
  std::vector<std::pair<const Expr*, const Expr*>> contexts;  // expression, target or null
  std::vector<Import> imports;
  std::vector<const Stmt*> body, other;
};

// Owns the nodes of a tree.
struct Tree {
  Source source;
  std::deque<Expr> exprs;
  std::deque<Stmt> stmts;
  std::vector<const Stmt*> body;
};

// Brackets, operators and suites nest no deeper than this.
inline constexpr uint32_t max_nesting = 500;

// The tree of a whole text; with `indented`, of one that stands as deep as its first line. A DiagnosticError says what
// is not Python, or not of scripts.
Tree parse(const Source& source, bool indented = false);
// The expression in bytes [begin, end) of the tree's source (the inside of a string literal).
const Expr& parse_expression(Tree& tree, uint32_t begin, uint32_t end);

}  // namespace lathe::script::syntax
