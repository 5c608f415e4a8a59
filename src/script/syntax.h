// The syntax tree of a script: Python's expressions, and the statements that dialects give a meaning.
#pragma once

#include <deque>
#include <span>

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
  uint32_t depth = 1;     // of nesting; the left operands of a chain of binary operators do not nest
  std::string_view text;  // in the source or the tree, as the items and labels
  std::span<const Expr* const> items;
  std::span<const std::string_view> labels;
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

// Short lists one after the other, which stay where they are.
template <class T>
class Lists {
 public:
  std::span<const T> keep(std::span<const T> list) {
    if (list.empty()) return {};
    if (list.size() > left_) {
      left_ = std::max(list.size(), chunk);
      chunks_.push_back(std::make_unique<T[]>(left_));
      next_ = chunks_.back().get();
    }
    T* const begin = std::exchange(next_, next_ + list.size());
    left_ -= list.size();
    std::copy(list.begin(), list.end(), begin);
    return {begin, list.size()};
  }

 private:
  static constexpr size_t chunk = 1024;
  std::vector<std::unique_ptr<T[]>> chunks_;
  T* next_ = nullptr;
  size_t left_ = 0;
};

// Nodes, which stay where they are.
template <class T>
class Nodes {
 public:
  T& add() {
    if (size_ % chunk == 0) chunks_.push_back(std::make_unique<T[]>(chunk));
    return (*this)[size_++];
  }
  T& operator[](size_t i) { return chunks_[i / chunk][i % chunk]; }
  size_t size() const { return size_; }

 private:
  static constexpr size_t chunk = 64;
  std::vector<std::unique_ptr<T[]>> chunks_;
  size_t size_ = 0;
};

// Owns the nodes of a tree.
struct Tree {
  Source source;
  Nodes<Expr> exprs;
  Nodes<Stmt> stmts;
  std::vector<const Stmt*> body;
  Lists<const Expr*> items;
  Lists<std::string_view> labels;
  std::deque<std::string> texts;  // that do not stand in the source
};

// Brackets, operators and suites nest no deeper than this.
inline constexpr uint32_t max_nesting = 500;

// The tree of a whole text; with `indented`, of one that stands as deep as its first line. A DiagnosticError says what
// is not Python, or not of scripts.
Tree parse(const Source& source, bool indented = false);
// The expression in bytes [begin, end) of the tree's source (the inside of a string literal).
const Expr& parse_expression(Tree& tree, uint32_t begin, uint32_t end);

}  // namespace lathe::script::syntax
