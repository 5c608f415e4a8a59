// Reads one graph function from its syntax tree. What is nested is bound to names first, as normal form asks.
#pragma once

#include <set>

#include "relax/operator.h"
#include "script/expr_reader.h"

namespace lathe::relax {

class FunctionReader : public script::ExprReader {
 public:
  FunctionReader(script::Context& context, const OperatorTable& operators)
      : ExprReader(context, scope_), operators_(operators) {}

  // What callers know of the function: its parameters' and result's struct info.
  StructInfo signature(const script::syntax::Stmt& def);
  Function function(const script::syntax::Stmt& def);

 protected:
  std::optional<Value> other_path(const std::string& path, const Syntax& e) override;
  std::optional<Value> other_call(const Syntax& e) override;

 private:
  using Line = script::syntax::Stmt;
  using Lines = std::vector<const Line*>;

  // Blocks of a sequence while its lines are read.
  struct Sequence {
    std::vector<BindingBlock> blocks;
    std::vector<Binding> open;
    bool dataflow = false;
    Expr result;
  };

  void head(const Line& def);

  // ---- struct info ----
  StructInfo info(const Syntax& e);
  StructInfo info_call(std::string_view name, const script::Arguments& arguments);
  bool is_info(const Syntax& e) const;
  std::vector<StructInfo> info_list(const Syntax& e);
  std::vector<ir::Expr> dimensions(const Syntax& e);
  ir::Expr dimension(const Syntax& e);
  ir::Expr dimension_of_any_type(const Syntax& e);
  const Syntax& inside(const Syntax& string_literal);

  // ---- lines ----
  void line(const Line& s, Sequence& into);
  void bind(std::string_view name, const Syntax& at, const Syntax& value, const Syntax* annotation, Sequence& into);
  void bind_tuple(const Syntax& targets, const Syntax& value, Sequence& into);
  void match_cast(std::string_view name, const Syntax& at, const Syntax& call, const Syntax* annotation,
                  Sequence& into);
  Var add_binding(std::string_view name, const Syntax& at, Expr value, StructInfo info, Sequence& into);
  void expression(const Line& s, Sequence& into);
  void with(const Line& s, Sequence& into);
  Var branch(const Line& s, Sequence& into);
  Expr branch_body(const Lines& lines, const Line& s, std::string& name, StructInfo& declared);
  void close(Sequence& s, bool dataflow);
  StructInfo agreed(const StructInfo& inferred, const StructInfo& declared, const Syntax& at) const;

  // ---- expressions ----
  Expr graph(const Syntax& e);  // any expression
  Expr leaf(const Syntax& e);   // bound to a name when it is no leaf; a tuple of leaves stays
  Expr to_leaf(Expr e, const Syntax& at);
  Expr graph_call(const Syntax& e);
  Expr relax_call(const std::string& name, const Syntax& e);
  [[noreturn]] void unknown_operator(const std::string& name, const Syntax& at) const;
  Expr operator_call(const Operator& op, const script::Arguments& arguments);
  Expr make_operator_call(const Operator& op, std::vector<Expr> args, const Value::Map& attributes, const Syntax& at,
                          std::vector<StructInfo> infos = {});

  // ---- calls as TVM documents them ---- (read_documented.cpp); null where the arguments are not those
  struct Parameter {
    std::string_view name;
    bool is_required = false;
  };
  using Given = std::vector<const Syntax*>;  // by parameter; null: absent
  struct Signature {
    std::string_view op;
    std::vector<Parameter> parameters;
    Expr (FunctionReader::*read)(const Given& given, const Syntax& call);
  };
  static const std::vector<Signature>& signatures();
  Expr documented_call(const Operator& op, const script::Arguments& arguments);
  Expr documented_split(const Given& given, const Syntax& call);
  Expr documented_strided_slice(const Given& given, const Syntax& call);
  Expr documented_full(const Given& given, const Syntax& call);
  Expr documented_take(const Given& given, const Syntax& call);
  const Operator& known_operator(const std::string& name, const Syntax& at) const;
  Expr call_tir(const script::Arguments& arguments, const Operator& op);
  Expr callee_call(Expr callee, const script::Arguments& arguments);
  Expr argument(const Syntax& e, Input::Sort sort);
  bool variadic_items(const Syntax& e, Input::Sort sort, std::vector<Expr>& args);
  Expr global(const std::string& name) const;
  Expr with_info(Expr e, const Syntax& at);
  Expr from_value(const Value& v, const Syntax& at);

  script::Scope scope_;
  const OperatorTable& operators_;
  std::vector<Var> params_;
  StructInfo result_info_;
  const Syntax* result_at_ = nullptr;
  Attributes attrs_;
  bool is_pure_ = true;
  std::set<const Line*> declared_;
  std::set<const Syntax*> outputs_;  // targets that outlive their dataflow block
  Sequence* sequence_ = nullptr;     // where nested values are bound
  int temporaries_ = 0;
};

// How two struct infos contradict each other ("float32[2, 3], not float32[2, 4]"), or nothing.
std::optional<std::string> contradiction(const StructInfo& value, const StructInfo& declared);

}  // namespace lathe::relax
