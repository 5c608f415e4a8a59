// Prints one tensor function: statements as lines, buffers declared where what they refer to is known.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "script/expr_printer.h"
#include "tir/stmt.h"

namespace lathe::tir {

using script::Document;
using script::Lines;
using script::PrintOptions;

class FunctionPrinter : public script::ExprPrinter {
 public:
  FunctionPrinter(Lines& lines, const PrintOptions& options) : ExprPrinter(options, names_), lines_(lines) {}

  void function(const std::string& name, const PrimFunc& f);
  // The line, from 0, in which each statement and block of the function begins, after it is printed. A statement that
  // the function holds several times has the first.
  std::unordered_map<const Node*, size_t> first_lines() const;
  // A statement alone: what is free in it is named, not declared.
  void fragment(const Stmt& s);

 protected:
  void define_missing(const NodeRef& node, std::string_view hint) override;

 private:
  // Buffers that no statement declares: printed once all they refer to is defined.
  struct Pending {
    Buffer buffer;
    size_t missing = 0;
  };
  void collect_pending(const PrimFunc& f);
  void announce(const Var& v);

  std::string define_var(const Var& v);
  std::string define_buffer(const Buffer& b);
  // "A = T.<callee>(first…, shape, dtype, …)"
  void buffer_line(const Buffer& b, std::string_view callee, std::vector<std::string> first = {});
  void declare_symbols(const Buffer& b);
  std::string buffer_call(const Buffer& b, std::string_view callee, std::vector<std::string> first);

  bool is_plain_parameter(const PrimFunc& f, const Var& param, const Buffer& b) const;
  void body_of_function(const PrimFunc& f, bool sugar_root);

  // `last`: nothing follows in the enclosing suite, so that definitions may stand as lines of their own.
  void stmt(const Stmt& s, bool last);
  void suite(const Stmt& s);
  void scoped(const std::string& text, const Var& v, const Stmt& body, bool last);
  void declared(const Buffer& b, const Stmt& body, bool last);
  void loop(const For& n);
  std::string loop_header(const For& n);
  void block(const Block& b, const BlockRealize* realize);
  void axes(const Block& b, const BlockRealize* realize);
  std::string axis_call(const IterVarNode& v, const Expr* value);
  bool remaps(const IterVarNode& v, const Expr& value) const;
  void begins_here(const Node& n) { begins_.push_back({&n, lines_.count() - top_}); }
  void branch(const IfThenElse& n, std::string_view keyword);
  std::string regions(std::string_view name, const std::vector<BufferRegion>& list);
  std::string region_text(const BufferRegionNode& r);

  script::Names names_;
  Lines& lines_;
  std::unordered_map<const Node*, Range> domains_;  // of loop variables in scope
  std::unordered_map<const Node*, std::vector<size_t>> waiting_;
  std::vector<Pending> pending_;
  std::unordered_set<const Node*> used_handles_;
  std::vector<std::pair<const Node*, size_t>> begins_;  // statements, by their lines below `top_`
  size_t top_ = 0;                                      // where declarations of free variables go
  int top_level_ = 0;
  bool declares_ = true;
};

}  // namespace lathe::tir
