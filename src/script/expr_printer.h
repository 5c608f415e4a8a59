// Prints scalar expressions, buffers and attribute values of either IR. Statements and graphs are the dialects'.
#pragma once

#include "ir/expr.h"
#include "script/document.h"
#include "script/names.h"
#include "script/options.h"

namespace lathe::script {

class ExprPrinter {
 public:
  ExprPrinter(const PrintOptions& options, Names& names) : options(options), names(names) {}
  virtual ~ExprPrinter() = default;

  // The expression; a literal shows its dtype ("T.int32(3)").
  Document expr(const ir::Expr& e);
  // As `expr`, where the reader expects `dtype`: an integer literal of that dtype stands bare.
  Document expected(const ir::Expr& e, ir::DType dtype);
  // An expression in an index position: int64 literals stand bare.
  Document index(const ir::Expr& e) { return expected(e, ir::DType::int64()); }
  std::vector<std::string> indices(const std::vector<ir::Expr>& list);
  // [min, min + extent) as an index (one element: "i") or a slice ("0:n"); its two bounds.
  std::string range(const ir::Range& range);
  std::pair<std::string, std::string> bounds(const ir::Range& range);
  std::string region(const std::vector<ir::Range>& ranges);

  std::string variable(const ir::Var& v);
  std::string buffer(const ir::Buffer& b);
  // A function of the module: "Module.f", or "I.GlobalVar(...)" where the name is no identifier.
  Document symbol(const std::string& name, std::string_view module);
  Document iter_var(const ir::IterVarNode& v);
  Document value(const ir::Value& v);
  Document attributes(const ir::Attributes& attributes);
  // `T.Buffer`-like arguments: shape, dtype, and what differs from the defaults.
  std::vector<std::string> buffer_arguments(const ir::BufferNode& b, bool data_is_known);
  // "T.int64(is_size_var=True)": how a free variable is declared.
  std::string declaration(const ir::VarNode& v);

  std::string tir(std::string_view name) const { return options.tir_prefix + "." + std::string(name); }

  const PrintOptions options;
  Names& names;

 protected:
  // Names a variable or buffer that no scope has defined.
  virtual void define_missing(const ir::NodeRef& node, std::string_view hint) { names.define_outermost(node, hint); }
  // A node, other than a scalar expression, inside an attribute value.
  virtual Document other_node(const ir::NodeRef& node);

 private:
  Document literal(const ir::IntImm& n);
  Document binary(const ir::Expr& a, std::string_view symbol, const ir::Expr& b, Precedence precedence);
  Document function(std::string_view name, const ir::Expr& a, const ir::Expr& b);
  Document call_of(const ir::Call& n);
  Document let(const ir::Let& n);
  Document reduce(const ir::Reduce& n);
  std::pair<Document, Document> pair(const ir::Expr& a, const ir::Expr& b);
};

// The text of one expression for messages: "n * 4 + 1". Literals stand bare.
std::string expression_text(const ir::Expr& e);
// "[8, n]".
std::string shape_text(const std::vector<ir::Expr>& shape);

std::string_view iter_type_name(ir::IterType type);

}  // namespace lathe::script
