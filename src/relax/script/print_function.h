// Prints one graph function.
#pragma once

#include "relax/operator.h"
#include "script/expr_printer.h"

namespace lathe::relax {

using script::Document;
using script::Lines;
using script::PrintOptions;

class FunctionPrinter : public script::ExprPrinter {
 public:
  FunctionPrinter(Lines& lines, const PrintOptions& options) : ExprPrinter(options, names_), lines_(lines) {}

  void function(const std::string& name, const FunctionNode& f);
  // A part of a function alone: what is free in it is named, not declared.
  std::string fragment(const NodeRef& node);

 protected:
  void define_missing(const NodeRef& node, std::string_view hint) override;
  Document other_node(const NodeRef& node) override;

 private:
  std::string relax(std::string_view name) const { return options.relax_prefix + "." + std::string(name); }
  Document expression(const Expr& e);
  Document call_of(const Call& n);
  std::vector<std::string> arguments(const std::vector<Expr>& args);
  void add_attributes(const Call& n, std::vector<std::string>& arguments);
  std::string variable_of(const Expr& e);

  // In a signature, dimensions that are no numbers stand in string literals: their names are not bound yet.
  std::string info(const StructInfo& info);
  std::string dimension(const ir::Expr& e);
  std::vector<std::string> dimensions(const std::vector<ir::Expr>& list);
  void declare_symbols(const NodeRef& root);

  void sequence(const SeqExpr& seq);
  void blocks(const std::vector<BindingBlock>& list);
  void block(const BindingBlockNode& b);
  void binding(const Binding& b);
  void assign(const Var& var, const std::string& value, bool annotated = true);
  void branch(const Expr& body, const Var& result);

  script::Names names_;
  Lines& lines_;
  std::vector<std::string>* outputs_ = nullptr;  // of the open dataflow block
  bool in_signature_ = false;
  size_t top_ = 0;
  int top_level_ = 0;
  bool declares_ = true;
};

}  // namespace lathe::relax
