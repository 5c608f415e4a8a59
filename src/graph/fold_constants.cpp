#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(fold_constants_swaps_values, "graph_test", "the values that were folded change places");

namespace {

std::optional<int64_t> byte_size(const StructInfo& info) {
  if (const auto* tuple = info.as<TupleStructInfo>()) {
    int64_t total = 0;
    for (const StructInfo& item : tuple->items) {
      const auto bytes = byte_size(item);
      if (!bytes) return std::nullopt;
      total += *bytes;
    }
    return total;
  }
  const auto* tensor = info.as<TensorStructInfo>();
  if (!tensor || !tensor->shape) return std::nullopt;
  int64_t count = 1;
  for (const ir::Expr& extent : *tensor->shape) {
    const auto value = ir::as_int(extent);
    if (!value) return std::nullopt;
    count *= *value;
  }
  return tensor->dtype.storage_bytes(count);
}

// The part of a function that constants determine, as a function of those constants.
class ConstantPart {
 public:
  explicit ConstantPart(const Function& function) {
    for (const Binding& binding : all_bindings(function)) {
      const auto* bound = binding.as<VarBinding>();
      if (bound && foldable(bound->value)) take(*bound);
    }
    find_needed(function);
  }

  bool empty() const { return needed_.empty(); }
  const std::vector<Var>& needed() const { return needed_; }
  const std::vector<ir::TensorData>& inputs() const { return inputs_; }

  ir::IRModule module() const {
    std::vector<Expr> items(needed_.begin(), needed_.end());
    std::vector<StructInfo> infos;
    for (const Expr& item : items) infos.push_back(item->struct_info);
    Expr result = with_struct_info(make<Tuple>(std::move(items)), make<TupleStructInfo>(std::move(infos)));
    ir::IRModule module;
    module.set("main", make_function(params_, bindings_, std::move(result), {}));
    return module;
  }

 private:
  bool constant(const Expr& e) const {
    if (!e || e.is<Constant>()) return true;
    if (const auto* shape = e.as<ShapeExpr>()) {
      for (const ir::Expr& extent : shape->values)
        if (!ir::as_int(extent)) return false;
      return true;
    }
    if (const auto* scalar = e.as<PrimValue>()) return ir::as_int(scalar->value) || ir::as_float(scalar->value);
    if (const auto* tuple = e.as<Tuple>()) {
      for (const Expr& item : tuple->items)
        if (!constant(item)) return false;
      return true;
    }
    return e.is<VarNode>() && folded_.count(e.get());
  }

  bool foldable(const Expr& value) const {
    if (const auto* item = value.as<TupleGetItem>()) return constant(item->tuple) && item->tuple.is<VarNode>();
    const auto* call = value.as<Call>();
    const Operator* op = call ? callee_operator(*call) : nullptr;
    if (!op || std::holds_alternative<RuntimeKernel>(op->meaning)) return false;
    int64_t from = 0;
    for (const Expr& arg : call->args) {
      if (!constant(arg)) return false;
      if (arg) from += byte_size(arg->struct_info).value_or(0);
    }
    const auto to = byte_size(value->struct_info);
    return to && *to - from <= largest_growth_bytes;
  }

  // Constants of several elements become parameters, so that equal work on different weights is one function.
  Expr outside(const Expr& e) {
    if (const auto* tuple = e ? e.as<Tuple>() : nullptr) {
      std::vector<Expr> items;
      for (const Expr& item : tuple->items) items.push_back(outside(item));
      return with_struct_info(make<Tuple>(std::move(items)), e->struct_info);
    }
    const auto* constant = e ? e.as<Constant>() : nullptr;
    if (!constant || constant->data->elements() == 1) return e;
    Var& param = parameter_[constant->data.get()];
    if (!param) {
      param = relax_var("c" + std::to_string(params_.size()), e->struct_info);
      params_.push_back(param);
      inputs_.push_back(constant->data);
    }
    return param;
  }

  void take(const VarBinding& bound) {
    Expr value = bound.value;
    if (const auto* call = value.as<Call>()) {
      std::vector<Expr> args;
      for (const Expr& arg : call->args) args.push_back(outside(arg));
      const StructInfo info = value->struct_info;
      value = with_struct_info(ir::with(*call, [&](Call& copy) { copy.args = args; }), info);
    }
    folded_.insert(bound.var.get());
    bindings_.push_back(make<VarBinding>(std::move(value), bound.var));
  }

  // Folded variables that the rest of the function, or its result, uses.
  void find_needed(const Function& function) {
    std::unordered_map<const ir::Node*, int> inside;
    for (const Binding& binding : bindings_) {
      const auto count = [&](const ir::NodeRef& n) {
        if (n.is<VarNode>()) ++inside[n.get()];
      };
      ir::NodeRef value = binding.as<VarBinding>()->value;
      value->node_class().for_each_child(*value, [&](const ir::NodeRef& child) {
        count(child);
        if (const auto* tuple = child.as<Tuple>())
          for (const Expr& item : tuple->items) count(item);
      });
    }
    const auto uses = count_uses(function);
    for (const Binding& binding : bindings_) {
      const Var& var = binding.as<VarBinding>()->var;
      const auto all = uses.find(var.get());
      if (all == uses.end() || !as_tensor(var)) continue;
      if (all->second > inside[var.get()]) needed_.push_back(var);
    }
  }

  std::unordered_set<const ir::Node*> folded_;
  std::vector<Binding> bindings_;
  std::unordered_map<const ir::Node*, Var> parameter_;
  std::vector<Var> params_;
  std::vector<ir::TensorData> inputs_;
  std::vector<Var> needed_;
};

}  // namespace

support::Result<ir::IRModule> fold_constants(ir::IRModule module, const ir::PassContext& context) {
  const std::vector<ir::IRModule::Entry> functions = module.functions();
  for (const auto& [name, base] : functions) {
    if (!base.is<relax::FunctionNode>() || base->attrs.get_or("primitive", false)) continue;
    const Function function = ir::cast<relax::FunctionNode>(base);
    const ConstantPart part(function);
    if (part.empty()) continue;
    if (!context.evaluate) {
      context.remark("fold_constants", name, "the context has no evaluator");
      continue;
    }
    const std::vector<ir::TensorData> values = TRY(context.evaluate(part.module(), "main", part.inputs()));
    support::require(values.size() == part.needed().size(), "the evaluator gave another number of results");
    std::unordered_map<const ir::Node*, Expr> folded;
    const bool backwards = support::flip(fold_constants_swaps_values);
    for (size_t i = 0; i < values.size(); ++i)
      folded[part.needed()[i].get()] = constant(values[backwards ? values.size() - 1 - i : i]);
    const auto replace = [&](Emitter&, const Var& var, const Expr&) -> Result<Expr> {
      const auto it = folded.find(var.get());
      return it == folded.end() ? Expr() : it->second;
    };
    module.set(name, TRY(rewrite_bindings(function, replace)));
  }
  return module;
}

}  // namespace lathe::graph
