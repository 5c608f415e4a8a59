// BlockBuilder: emits relax bindings in A-normal form, with struct info computed on the way.
//
//   BlockBuilder b;
//   b.begin_function("main", {x, w});
//   b.begin_dataflow();
//   Expr y = TRY(b.call(ops::matmul, {x, w}));
//   y = b.emit_output(TRY(b.call(ops::relu, {y})));
//   b.end_block();
//   b.end_function(y);
//   IRModule module = b.finish();
#pragma once

#include "relax/assert_op.h"

namespace lathe::relax {

class BlockBuilder {
 public:
  explicit BlockBuilder(ir::IRModule module = {}) : module_(std::move(module)) {}

  // What is emitted from now on comes from there (a model's node); failures of type rules carry its place.
  void set_origin(ir::Origin origin) { origin_ = std::move(origin); }
  const ir::Origin& origin() const { return origin_; }
  // What is said of the operands, "; 'x', the graph's input, is float32[2, 3]", where a check that is emitted from now
  // on fails. Gives what said it before.
  using Describe = std::function<Message()>;
  Describe set_operands(Describe describe) { return std::exchange(operands_, std::move(describe)); }
  Message operands() const { return operands_ ? operands_() : Message(); }

  // ---- functions and scopes ----
  void begin_function(std::string name, std::vector<Var> params, ir::Attributes attrs = {});
  // Closes the function with `result` as its value and adds it to the module.
  Function end_function(Expr result);
  // A nested sequence, such as a branch of an If: what is emitted until `end_scope` belongs to it.
  void begin_scope();
  Expr end_scope(Expr result);  // a SeqExpr
  // Where the builder stands, and a return to there: the scopes and functions begun since are dropped.
  struct Mark {
    size_t scopes, functions;
  };
  Mark mark() const { return {scopes_.size(), module_.size()}; }
  void go_back(const Mark& mark);

  // ---- blocks ----
  // Bindings are collected in blocks; beginning one ends the one before. Outside any, emitting begins an ordinary one.
  void begin_dataflow() { begin_block(true); }
  void begin_block(bool is_dataflow = false);
  // Ends the open block and gives it; it also stays in its scope. Empty blocks are dropped from scopes.
  BindingBlock end_block();

  // ---- bindings ----
  // Binds the value to a variable and gives the variable; nested calls are bound before it. A leaf (variable,
  // constant, shape, scalar) is given back as it is. Missing struct info is computed; a failure is a DiagnosticError.
  Expr emit(Expr value, const std::string& name = "");
  // As `emit`, but the variable may be used after its dataflow block; a leaf is bound too.
  Expr emit_output(Expr value, const std::string& name = "");
  // A call of an operator: its type rule, then `emit`.
  Result<Expr> call(const Operator& op, std::vector<Expr> args, AttributesRef attributes = {},
                    const std::string& name = "");
  // Calls the tensor program that `build` gives for placeholders of the arguments' shapes.
  using TeBuilder = std::function<std::vector<te::Tensor>(const std::vector<te::Tensor>&)>;
  Result<Expr> call_te(const std::string& name, std::vector<Expr> args, const TeBuilder& build);
  // `value` with stronger struct info, checked at run time.
  Expr match_cast(Expr value, StructInfo info, const std::string& name = "");
  // Binds to a variable that exists already.
  void bind(const Var& var, Expr value);
  // The item of a tuple: of a tuple expression its item, else a TupleGetItem.
  Expr tuple_item(const Expr& tuple, int64_t index);

  // Adds a function under the hint or a name derived from it; gives the name.
  std::string add_function(ir::BaseFunc function, const std::string& hint);
  const ir::IRModule& module() const { return module_; }
  ir::IRModule finish() { return std::move(module_); }

 private:
  struct Scope {
    std::vector<BindingBlock> blocks;
    std::vector<Binding> open;
    bool is_open = false;
    bool is_dataflow = false;
  };
  struct OpenFunction {
    std::string name;
    std::vector<Var> params;
    ir::Attributes attrs;
  };
  Scope& scope();
  Expr normalize_argument(Expr e);
  Expr normalize(Expr e);
  Expr bind_new(Expr value, const std::string& name, bool is_dataflow);
  std::string unique(const std::string& hint);

  ir::IRModule module_;
  ir::Origin origin_;
  Describe operands_;
  std::vector<Scope> scopes_;
  std::vector<OpenFunction> functions_;
  std::unordered_map<std::string, int> names_;
};

// Whether `e` may stand as an argument: a variable, constant, shape, scalar, string, dtype, function or operator.
bool is_leaf(const Expr& e);

}  // namespace lathe::relax
