// Reads expressions of a script: scalar expressions, buffers and attribute values of either IR.
//
// Python literals are weak: beside a typed operand they take its dtype; alone, an integer is int64 and a float
// float32. Arithmetic of literals is Python's. Nothing else is folded, so that a printed program reads back as it was.
#pragma once

#include "ir/build.h"
#include "script/scope.h"

namespace lathe::script {

class ExprReader {
 public:
  ExprReader(Context& context, Scope& scope) : context(context), scope(scope) {}
  virtual ~ExprReader() = default;

  using Syntax = syntax::Expr;

  // The value of any expression: a literal, list or map; a handle to a scalar expression, buffer or other node.
  ir::Value value(const Syntax& e);
  // As a scalar expression; a weak integer becomes `integer`, a weak float float32.
  ir::Expr expr(const Syntax& e, ir::DType integer = ir::DType::int64());
  // As a scalar expression of exactly `dtype` (literals are converted).
  ir::Expr expr_of(const Syntax& e, ir::DType dtype, std::string_view what);
  std::vector<ir::Expr> expr_list(const Syntax& e, std::string_view what);  // a tuple, a list, or one expression
  int64_t integer(const Syntax& e, std::string_view what);
  std::string string(const Syntax& e, std::string_view what);
  bool boolean(const Syntax& e, std::string_view what);
  ir::DType dtype(const Syntax& e, std::string_view what);
  ir::Attributes attributes(const Syntax& e);
  ir::Buffer buffer(const Syntax& e, std::string_view what);
  // A buffer, or indices and slices of one.
  std::pair<ir::Buffer, std::vector<ir::Range>> region(const Syntax& e);
  virtual std::vector<ir::Expr> load_indices(const ir::Buffer& buffer, const Syntax& index);
  // The bounds (begin, end) or the extent of a domain.
  ir::Range domain(const Syntax& e, ir::DType literal);
  ir::Range between(ir::Expr begin, ir::Expr end);
  ir::TensorData constant_data(const struct Arguments& arguments);

  ir::Expr to_expr(const ir::Value& v, const Syntax& at, ir::DType integer);
  // Both sides as scalar expressions of one dtype.
  std::pair<ir::Expr, ir::Expr> unify(const Syntax& a, const Syntax& b);

  // `a op b`, for the operator of expression or statement `e`.
  ir::Value combine(const Syntax& e, std::string_view op, const ir::Value& a, const Syntax& at_a, const ir::Value& b,
                    const Syntax& at_b);

  // "tir.axis.spatial" for T.axis.spatial, where T is an alias that no variable hides; empty for anything else.
  std::string path_of(const Syntax& e) const;
  // The function of the module that `cls.f` or `Module.f` names, or nothing.
  std::optional<std::string> module_function(const Syntax& e) const;

  [[noreturn]] void fail(support::Code code, const Syntax& at, std::string message, std::string help = "") const;
  std::string source_text(const Syntax& e) const;
  bool is_host_object(const Syntax& e) const;
  ir::Origin origin(uint32_t begin, uint32_t end) const;
  ir::Origin origin(const Syntax& e) const { return origin(e.begin, e.end); }
  support::TextRange range(const Syntax& e) const { return {context.tree.source, e.begin, e.end}; }

  Context& context;
  Scope& scope;
  std::string hint;  // the name of what is being assigned: for variables and buffers that the value makes

 protected:
  // A call or name of another dialect's namespace; nothing: not known either.
  virtual std::optional<ir::Value> other_path(const std::string& path, const Syntax& e);
  virtual std::optional<ir::Value> other_call(const Syntax& e);
  // Operands of different dtypes as operands of one, where the dialect converts by itself; else as they are.
  virtual std::pair<ir::Expr, ir::Expr> converted(ir::Expr a, ir::Expr b) { return {std::move(a), std::move(b)}; }
  // What a float literal is beside an integer.
  virtual ir::DType float_literal() const { return ir::DType::float32(); }
  // Where the functions are that convert.
  virtual std::string converter() const { return "T."; }
  // a / b of integers, where the dialect says what it is.
  virtual ir::Expr quotient(const ir::Expr&, const ir::Expr&) { return {}; }
  virtual ir::Value logical(const Syntax& e);
  virtual ir::Value conditional(const Syntax& e);
  std::pair<ir::Expr, ir::Expr> unify(const ir::Value& a, const Syntax& at_a, const ir::Value& b, const Syntax& at_b);

 private:
  ir::Value name(const Syntax& e);
  ir::Value number(const Syntax& e);
  ir::Value unary(const Syntax& e);
  ir::Value binary(const Syntax& e);
  ir::Value compare(const Syntax& e);
  ir::Value attribute(const Syntax& e);
  ir::Value subscript(const Syntax& e);
  ir::Value call(const Syntax& e);
  ir::Value tir_call(const std::string& name, const Syntax& e);
  ir::Expr passed(const Syntax& e);
  ir::Value address_or_value(const Syntax& e);
  ir::Value intrinsic_call(const ir::Intrinsic& op, const Arguments& arguments);
  ir::Value typed_literal(ir::DType dtype, const Arguments& arguments);
  ir::Value buffer_method(const ir::Buffer& buffer, std::string_view name, const Arguments& arguments);
  ir::Value access_pointer(const ir::Buffer& buffer, const Arguments& arguments);
  ir::Value access_pointer_of_memory(const Arguments& arguments);
  void check_access_mask(const Syntax& e);
  ir::Value address_of_element(const ir::Buffer& buffer, const ir::Expr& offset, const Syntax& at,
                               const Arguments& arguments);
  // expr_functions.cpp
  std::optional<ir::Value> function_call(std::string_view name, const Arguments& arguments);
  ir::Value vector_part(const Arguments& arguments);
  ir::Value fixed_point_product(const Arguments& arguments);
  ir::Value named_intrinsic(const Arguments& arguments);
  ir::Value call_node(const Arguments& arguments);
  ir::Value intrinsic_named(ir::DType dtype, const Syntax& name, std::vector<ir::Expr> args,
                            const Arguments& arguments);
  ir::Value lane_mask(const Arguments& arguments);
  ir::Value predicate_alone(const Arguments& arguments);
  ir::Value is_null(const Arguments& arguments);
  ir::Buffer memory_of(const Syntax& e);
  ir::Value address_beyond(const Arguments& arguments);
  ir::Value target(const Arguments& arguments);
  ir::Value let(const Arguments& arguments);
  ir::Value reduce(const Arguments& arguments);
  ir::Value index_map(const Arguments& arguments);
  ir::Value reducer(const Arguments& arguments);
  ir::Value iter_var(const Arguments& arguments);
  ir::Value host(const Syntax& e);
  double float_imm_value(const Syntax& e);
};

// The arguments of a call, by position and by name.
struct Arguments {
  Arguments(const ExprReader& reader, const syntax::Expr& call);

  // Argument `position`, or the one named `name`; null when absent.
  const syntax::Expr* find(size_t position, std::string_view name) const;
  const syntax::Expr* named(std::string_view name) const;
  // The same; a diagnostic when absent.
  const syntax::Expr& need(size_t position, std::string_view name) const;
  // A diagnostic for more positions, or for names other than these.
  void check(size_t most, std::initializer_list<std::string_view> names) const;
  size_t count() const { return positional.size(); }

  const ExprReader& reader;
  const syntax::Expr& call;
  std::span<const syntax::Expr* const> positional;
  std::vector<std::pair<std::string, const syntax::Expr*>> keywords;
};

// A node of type T in a value, or null.
template <class T>
ir::Ref<T> node_in(const ir::Value& v) {
  const auto* n = v.get<ir::NodeRef>();
  return n && n->as<T>() ? ir::cast<T>(*n) : ir::Ref<T>();
}
// The scalar expression in a value, or null.
inline ir::Expr expr_in(const ir::Value& v) {
  const auto* n = v.get<ir::NodeRef>();
  return n && *n && (*n)->node_class().family == ir::ExprNode::family ? ir::detail::narrow<ir::ExprNode>(*n)
                                                                      : ir::Expr();
}

}  // namespace lathe::script
