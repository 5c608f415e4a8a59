// Rewriting a function binding by binding: what most graph passes are made of.
#pragma once

#include "relax/block_builder.h"
#include "relax/operator.h"

namespace lathe::graph {

using namespace relax;  // NOLINT: graph passes are about relax programs

// Collects the bindings of the function that is being rewritten.
class Emitter {
 public:
  // Binds `value` to a new variable named after `hint` and gives the variable; leaves are given back as they are.
  Expr emit(Expr value, const std::string& hint);
  // Emits a call of `op`; the struct info follows from the operator's rule, the origin from the binding rewritten.
  Result<Expr> call(const Operator& op, std::vector<Expr> args, AttributesRef attributes = {},
                    const std::string& hint = "");
  // Binds `value` to a variable that exists already; a leaf replaces the variable in what is `replaced` later.
  void bind(const Var& var, Expr value);
  // Binds a cast; its value is `replaced`.
  void cast(const MatchCast& cast);
  // `e` with the variables that leaves have replaced.
  Expr replaced(const Expr& e) const;
  // The value that a variable is bound to in what was emitted so far, or null (parameters, other variables).
  Expr value_of(const Expr& var) const;

 private:
  friend class BindingRewriter;
  void keep(const Binding& binding);  // the next of those given, as it was
  void change();                      // what follows differs from what was given
  size_t count() const { return is_changed_ ? bindings_.size() : kept_; }
  const Binding& at(size_t i) const { return is_changed_ ? bindings_[i] : given_[i]; }

  // Most passes change nothing in most functions: the first `kept_` of those given are what was emitted until one
  // differs, and only then they are copied.
  std::span<const Binding> given_;
  size_t kept_ = 0;
  bool is_changed_ = false;
  std::vector<Binding> bindings_;
  // The values of the first bindings by variable: few passes ask, and a long function has many.
  mutable std::unordered_map<const ir::Node*, const Expr*> values_;
  mutable size_t known_values_ = 0;
  std::unordered_map<const ir::Node*, Expr> replaced_;
  const ir::Origin* origin_ = nullptr;  // of the binding that is rewritten
};

// What replaces a binding's value: a leaf (variable, constant, …) replaces the variable everywhere, another expression
// is bound to it; null keeps the value.
using RewriteValue = std::function<Result<Expr>(Emitter&, const Var&, const Expr& value)>;

// The function with every value rewritten in order; operands are already rewritten when `rewrite` sees them. The very
// function where nothing changes and it is one that make_function would make.
Result<Function> rewrite_bindings(const Function& function, const RewriteValue& rewrite);

// Every relax function of a module, in order, replaced by what `change` makes of it.
support::Status change_functions(
    ir::IRModule& module, support::function_ref<Result<Function>(const std::string& name, const Function&)> change);

// `rewrite_bindings` over every relax function of a module.
Result<ir::IRModule> rewrite_functions(ir::IRModule module, const RewriteValue& rewrite);

// The bindings of all blocks in order.
std::vector<Binding> all_bindings(const Function& function);
const Var& var_of_binding(const Binding& binding);
// How often each variable is used, by bindings and by the result.
std::unordered_map<const ir::Node*, int> count_uses(const Function& function);
// A function of one dataflow block; variables that only bindings use become dataflow variables.
Function make_function(std::vector<Var> params, std::vector<Binding> bindings, Expr result, const Attributes& attrs,
                       bool is_pure = true);
// Where each axis of a permute_dims comes from, counted from the first.
std::vector<int64_t> permuted_axes(const Call& permute);
// The call of operator `name` that `e` is, or null.
const Call* as_call_of(const Expr& e, std::string_view name);

}  // namespace lathe::graph
