#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "relax/block_builder.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(expand_composites_skips_inner, "graph_test", "a composite inside a composite is taken for its operand");

namespace {

constexpr int deepest_nesting = 16;  // a composite of composites of …

// One pass over a module: the tensor programs of expansions become functions of it.
class Expander {
 public:
  explicit Expander(const ir::IRModule& module) : builder_(module), given_(module.size()) {}

  Result<Expr> rewrite(Emitter& emitter, const Var& var, const Expr& value) {
    Expr expanded = TRY(expand(emitter, value, 0));
    if (!expanded && has_new_symbols_) expanded = TRY(typed_again(value));
    if (!expanded || is_leaf(expanded) || expanded->struct_info.same_as(var->struct_info)) return expanded;
    return has_new_symbols_ ? emitter.emit(expanded, var->name) : expanded;
  }

  void add_functions_to(ir::IRModule& module) {
    const ir::IRModule all = builder_.finish();
    for (size_t i = given_; i < all.size(); ++i) module.set(all.functions()[i].first, all.functions()[i].second);
  }

 private:
  Result<Expr> expand(Emitter& emitter, const Expr& value, int depth) {
    const auto* call = value.as<Call>();
    const Operator* op = call ? callee_operator(*call) : nullptr;
    const auto* composite = op ? std::get_if<Composite>(&op->meaning) : nullptr;
    if (!composite) return Expr();
    support::require(depth < deepest_nesting, "composites are nested without end");
    builder_.set_origin(value->origin());
    builder_.begin_scope();
    Expr result = TRY((*composite)(builder_, *call));
    const Expr scope = builder_.end_scope(std::move(result));
    const auto& sequence = *scope.as<SeqExpr>();
    for (const BindingBlock& block : sequence.blocks)
      for (const Binding& binding : block->bindings) {
        if (const auto* cast = binding.as<MatchCast>()) {
          emitter.cast(*cast);
          has_new_symbols_ = true;
          continue;
        }
        const auto* bound = binding.as<VarBinding>();
        const Expr inner = emitter.replaced(bound->value);
        Expr expanded = TRY(expand(emitter, inner, depth + 1));
        if (expanded && support::flip(expand_composites_skips_inner)) expanded = inner.as<Call>()->args[0];
        emitter.bind(bound->var, expanded ? expanded : inner);
      }
    return emitter.replaced(sequence.body);
  }

  // A call of an operator whose struct info knew no extents: its operands may have symbols now.
  static Result<Expr> typed_again(const Expr& value) {
    const auto* call = value.as<Call>();
    const Operator* op = call ? callee_operator(*call) : nullptr;
    const TensorStructInfo* info = as_tensor(value);
    if (!op || (info && info->shape)) return Expr();
    return make_call(*op, call->args, call->attributes, value->origin(), call->struct_info_args);
  }

  BlockBuilder builder_;
  size_t given_;
  bool has_new_symbols_ = false;  // an expansion introduced some: what follows may know more
};

// A public function's result that is the name of a tuple of tensors becomes the tuple: each item is a result itself.
Function open_result(const Function& function) {
  const auto* body = function->body.as<SeqExpr>();
  const auto* tuple = body && body->body.is<VarNode>() ? body->body->struct_info.as<TupleStructInfo>() : nullptr;
  if (!tuple || tuple->items.empty() || function->attrs.get_or("private", false)) return function;
  for (const StructInfo& item : tuple->items)
    if (!item.is<TensorStructInfo>()) return function;
  std::vector<Binding> bindings = all_bindings(function);
  std::vector<Expr> items;
  for (const Binding& binding : bindings)
    if (const auto* bound = binding.as<VarBinding>(); bound && Expr(bound->var).same_as(body->body))
      if (const auto* value = bound->value.as<relax::Tuple>()) items = value->items;
  if (items.empty())
    for (size_t i = 0; i < tuple->items.size(); ++i) {
      const Expr item =
          with_struct_info(make<relax::TupleGetItem>(body->body, static_cast<int64_t>(i)), tuple->items[i]);
      items.push_back(relax::relax_var("result_" + std::to_string(i), tuple->items[i]));
      bindings.push_back(ir::with_origin<relax::BindingNode>(make<VarBinding>(item, ir::cast<VarNode>(items.back())),
                                                             function->origin()));
    }
  std::vector<StructInfo> infos;
  for (const Expr& item : items) infos.push_back(item->struct_info);
  Expr result = with_struct_info(make<relax::Tuple>(std::move(items)), make<TupleStructInfo>(std::move(infos)));
  return ir::with_origin(
      make_function(function->params, std::move(bindings), std::move(result), function->attrs, function->is_pure),
      function->origin());
}

}  // namespace

support::Result<ir::IRModule> expand_composites(ir::IRModule module, const ir::PassContext&) {
  Expander expander(module);
  module = TRY(rewrite_functions(std::move(module), [&](Emitter& emitter, const Var& var, const Expr& value) {
    return expander.rewrite(emitter, var, value);
  }));
  expander.add_functions_to(module);
  TRY(change_functions(
      module, [](const std::string&, const Function& function) { return Result<Function>(open_result(function)); }));
  return module;
}

}  // namespace lathe::graph
