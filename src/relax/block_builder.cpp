#include "relax/block_builder.h"

#include <unordered_set>

#include "ir/match.h"
#include "ir/visit.h"
#include "relax/call_tir.h"
#include "relax/infer.h"
#include "relax/strings.h"

namespace lathe::relax {

bool is_leaf(const Expr& e) {
  return ir::match(
      e, [](const Tuple&) { return false; }, [](const TupleGetItem&) { return false; },
      [](const Call&) { return false; }, [](const SeqExpr&) { return false; }, [](const If&) { return false; },
      [](const ExprNode&) { return true; });
}

BlockBuilder::Scope& BlockBuilder::scope() {
  if (scopes_.empty()) scopes_.emplace_back();
  return scopes_.back();
}

void BlockBuilder::begin_function(std::string name, std::vector<Var> params, ir::Attributes attrs) {
  for (const Var& param : params) names_.try_emplace(param->name, 0);
  functions_.push_back({std::move(name), std::move(params), std::move(attrs)});
  scopes_.emplace_back();
}

Function BlockBuilder::end_function(Expr result) {
  support::require(!functions_.empty(), "end_function without begin_function");
  result = normalize_argument(std::move(result));
  StructInfo info = result->struct_info;
  Expr body = end_scope(std::move(result));
  OpenFunction open = std::move(functions_.back());
  functions_.pop_back();
  Function function =
      make<FunctionNode>(std::move(open.params), std::move(body), std::move(info), true, std::move(open.attrs));
  module_.set(open.name, function);
  return function;
}

void BlockBuilder::begin_scope() { scopes_.emplace_back(); }

Expr BlockBuilder::end_scope(Expr result) {
  support::require(!scopes_.empty(), "end_scope without a scope");
  result = normalize_argument(std::move(result));
  end_block();
  Scope done = std::move(scopes_.back());
  scopes_.pop_back();
  StructInfo info = result->struct_info;
  return with_struct_info(make<SeqExpr>(std::move(done.blocks), std::move(result)), std::move(info));
}

void BlockBuilder::go_back(const Mark& mark) {
  while (scopes_.size() > mark.scopes) scopes_.pop_back();
  if (module_.size() <= mark.functions) return;
  ir::IRModule kept;
  kept.attrs = module_.attrs;
  for (size_t i = 0; i < mark.functions; ++i) kept.set(module_.functions()[i].first, module_.functions()[i].second);
  module_ = std::move(kept);
}

void BlockBuilder::begin_block(bool is_dataflow) {
  end_block();
  scope().is_open = true;
  scope().is_dataflow = is_dataflow;
}

BindingBlock BlockBuilder::end_block() {
  Scope& s = scope();
  BindingBlock block = make<BindingBlockNode>(std::exchange(s.open, {}), s.is_dataflow);
  s.is_open = s.is_dataflow = false;
  if (!block->bindings.empty()) s.blocks.push_back(block);
  return block;
}

std::string BlockBuilder::unique(const std::string& hint) {
  const std::string base = hint.empty() ? "lv" : hint;
  const auto [it, fresh] = names_.try_emplace(base, 0);
  if (fresh) return base;
  std::string name;
  do name = base + "_" + std::to_string(++it->second);
  while (names_.count(name));
  names_[name] = 0;
  return name;
}

Expr BlockBuilder::normalize_argument(Expr e) {
  if (!e || is_leaf(e)) return e;
  if (e.is<Tuple>()) return normalize(std::move(e));
  return emit(std::move(e));
}

// The value with leaves (or tuples of leaves) as its operands, and struct info.
Expr BlockBuilder::normalize(Expr e) {
  const StructInfo info = e->struct_info;
  const ir::Origin from = e->origin();
  const auto normalize_all = [&](const std::vector<Expr>& items) {
    std::vector<Expr> normal;
    for (const Expr& item : items) normal.push_back(normalize_argument(item));
    return normal;
  };
  const auto changed = [](const std::vector<Expr>& a, const std::vector<Expr>& b) { return a != b; };
  if (const auto* call = e.as<Call>()) {
    if (std::vector<Expr> args = normalize_all(call->args); changed(args, call->args))
      e = make<Call>(call->callee, std::move(args), call->attributes, call->struct_info_args);
  } else if (const auto* tuple = e.as<Tuple>()) {
    if (std::vector<Expr> items = normalize_all(tuple->items); changed(items, tuple->items))
      e = make<Tuple>(std::move(items));
  } else if (const auto* get = e.as<TupleGetItem>()) {
    if (Expr inner = normalize_argument(get->tuple); inner != get->tuple)
      e = make<TupleGetItem>(std::move(inner), get->index);
  } else if (const auto* branch = e.as<If>()) {
    if (Expr condition = normalize_argument(branch->condition); condition != branch->condition)
      e = make<If>(std::move(condition), branch->true_branch, branch->false_branch);
  }
  if (!e->struct_info) {
    StructInfo known = info ? info : infer_struct_info(e).value_or_throw();
    e = with_struct_info(std::move(e), std::move(known));
  }
  return ir::with_origin(std::move(e), from ? from : origin_);
}

Expr BlockBuilder::bind_new(Expr value, const std::string& name, bool is_dataflow) {
  Var var = ir::with_origin(relax_var(unique(name), value->struct_info, is_dataflow), value->origin());
  bind(var, std::move(value));
  return var;
}

Expr BlockBuilder::emit(Expr value, const std::string& name) {
  value = normalize(std::move(value));
  if (is_leaf(value)) return value;
  return bind_new(std::move(value), name, scope().is_dataflow);
}

Expr BlockBuilder::emit_output(Expr value, const std::string& name) {
  return bind_new(normalize(std::move(value)), name, false);
}

Result<Expr> BlockBuilder::call(const Operator& op, std::vector<Expr> args, AttributesRef attributes,
                                const std::string& name) {
  for (Expr& arg : args) arg = normalize_argument(std::move(arg));
  return emit(TRY(make_call(op, std::move(args), std::move(attributes), origin_)), name);
}

Result<Expr> BlockBuilder::call_te(const std::string& name, std::vector<Expr> args, const TeBuilder& build) {
  std::vector<te::Tensor> inputs;
  for (Expr& arg : args) {
    arg = normalize_argument(std::move(arg));
    const TensorStructInfo* info = as_tensor(arg);
    if (!info || !info->shape)
      return support::Diagnostic{
          .code = codes::wrong_arguments,
          .message = "argument " + std::to_string(inputs.size()) + " of '" + name + "' is not a tensor of known shape"};
    inputs.push_back(te::placeholder(*info->shape, loop_dtype(info->dtype), "in" + std::to_string(inputs.size())));
  }
  const std::vector<te::Tensor> outputs = build(inputs);
  std::vector<StructInfo> infos;
  for (const te::Tensor& output : outputs) infos.push_back(tensor_info(output.shape(), output.dtype()));
  // Every symbol is handed over: a kernel cannot ask a buffer for its extents.
  std::vector<ir::Var> symbols;
  std::unordered_set<const ir::Node*> seen;
  for (const std::vector<te::Tensor>* tensors : {&std::as_const(inputs), &outputs})
    for (const te::Tensor& tensor : *tensors)
      for (const ir::Expr& extent : tensor.shape())
        for (const ir::Var& symbol : ir::free_vars(extent))
          if (seen.insert(symbol.get()).second) symbols.push_back(symbol);
  const tir::Function function = te::create_prim_func(inputs, outputs, std::move(symbols));
  std::vector<ir::Expr> scalars;
  for (const ir::Var& param : function->params)
    if (!param->dtype.is_handle()) scalars.push_back(param);
  const std::string known = add_function(function, name);
  return emit(TRY(call_tir(known, std::move(args), std::move(infos), std::move(scalars))), name);
}

Expr BlockBuilder::match_cast(Expr value, StructInfo info, const std::string& name) {
  value = normalize_argument(std::move(value));
  Var var = relax_var(unique(name), info, scope().is_dataflow);
  scope().is_open = true;
  scope().open.push_back(
      ir::with_origin<BindingNode>(make<MatchCast>(std::move(value), std::move(info), var), origin_));
  return var;
}

void BlockBuilder::bind(const Var& var, Expr value) {
  scope().is_open = true;
  ir::Origin from = value->origin();
  scope().open.push_back(ir::with_origin<BindingNode>(make<VarBinding>(std::move(value), var), from));
}

Expr BlockBuilder::tuple_item(const Expr& tuple, int64_t index) {
  if (const auto* items = tuple.as<Tuple>()) return items->items.at(static_cast<size_t>(index));
  return emit(make<TupleGetItem>(tuple, index));
}

std::string BlockBuilder::add_function(ir::BaseFunc function, const std::string& hint) {
  std::string name = module_.unique_name(hint);
  module_.set(name, std::move(function));
  return name;
}

}  // namespace lathe::relax
