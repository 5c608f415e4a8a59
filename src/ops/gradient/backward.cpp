#include "ops/gradient/backward.h"

#include "ir/visit.h"
#include "ops/build.h"
#include "ops/gradient/codes.h"
#include "ops/operators.h"
#include "relax/call_tir.h"
#include "relax/interpret/lower_call.h"
#include "support/mutation.h"
#include "tir/differentiate/adjoint_program.h"

namespace lathe::ops::gradient {

using ir::make;
using relax::as_tensor;
using relax::MatchCast;
using relax::Operator;
using relax::SeqExpr;
using relax::TensorStructInfo;
using relax::Tuple;
using relax::TupleGetItem;
using relax::TupleStructInfo;
using relax::VarBinding;
using relax::VarNode;

LATHE_FAULT(gradient_forgets_a_use, "graph_test", "of a value used twice, one use gives no gradient");

namespace {

// A call as a tensor program.
struct CallProgram {
  tir::Function function;
  std::vector<Expr> args;
  std::vector<ir::Expr> scalars;  // the values of the function's scalar parameters
};

// The function with every symbol of its shapes as a parameter: a kernel cannot ask a buffer for its extents.
CallProgram with_symbols(const tir::Function& f, std::vector<Expr> args) {
  CallProgram program{f, std::move(args), {}};
  std::unordered_set<const ir::Node*> known;
  std::vector<ir::Var> missing;
  for (const ir::Var& param : f->params) known.insert(param.get());
  for (const auto& [param, buffer] : f->buffer_map)
    for (const ir::Expr& extent : buffer->shape)
      for (const ir::Var& symbol : ir::free_vars(extent))
        if (known.insert(symbol.get()).second) missing.push_back(symbol);
  program.function =
      ir::with(*f, [&](tir::PrimFunc& copy) { copy.params.insert(copy.params.end(), missing.begin(), missing.end()); });
  for (const ir::Var& param : program.function->params)
    if (!param->dtype.is_handle()) program.scalars.push_back(param);
  return program;
}

support::Result<CallProgram> program_of(const ir::IRModule& module, const Expr& value) {
  if (const auto parts = as_call_tir(value)) {
    const tir::Function f = module.find_as<tir::PrimFunc>(parts->function);
    if (!f) return no_gradient_of(value, "there is no tensor program '" + parts->function + "'");
    return CallProgram{f, parts->args, parts->scalars};
  }
  relax::LoweredCall lowered = TRY(relax::lower_call(*value.as<Call>()));
  return with_symbols(lowered.function, std::move(lowered.inputs));
}

std::vector<StructInfo> items_of(const StructInfo& info) {
  const auto* tuple = info.as<TupleStructInfo>();
  return tuple ? tuple->items : std::vector<StructInfo>{info};
}

}  // namespace

std::vector<Var> copy_parameters(const std::vector<Var>& params, relax::Replacement& copies) {
  std::vector<Var> made;
  for (const Var& param : params) {
    made.push_back(relax::relax_var(param->name, param->struct_info));
    copies[param.get()] = made.back();
  }
  return made;
}

support::Failure no_gradient_of(const Expr& e, std::string message, std::vector<support::Note> notes) {
  support::Diagnostic d{.code = codes::no_gradient, .message = std::move(message), .notes = std::move(notes)};
  if (e->origin()) d.place = *e->origin();
  return support::Failure{{std::move(d)}};
}

support::Result<CopiedBody> Backward::copy(const Expr& sequence, relax::Replacement copies) {
  CopiedBody body;
  const auto copy = [&](const Binding& binding) -> support::Status {
    if (const auto* cast = binding.as<MatchCast>()) {
      const Expr value = replace_vars(cast->value, copies);
      const Expr var = builder_.match_cast(value, cast->struct_info, cast->var->name);
      copies[cast->var.get()] = var;
      body.bindings.push_back(make<MatchCast>(value, cast->struct_info, ir::cast<VarNode>(var)));
      note_active(body.bindings.back());
      return support::success();
    }
    const auto* bound = binding.as<VarBinding>();
    const Var var = relax::relax_var(bound->var->name, bound->var->struct_info, true);
    const Expr value = replace_vars(bound->value, copies);
    bind(var, as_loop(value) && depends(value) ? TRY(keep_starts(var, value, body.bindings)) : value, body.bindings);
    copies[bound->var.get()] = var;
    return support::success();
  };
  const auto& whole = *sequence.as<SeqExpr>();
  for (const relax::BindingBlock& block : whole.blocks)
    for (const Binding& binding : block->bindings) TRY(copy(binding));
  body.result = replace_vars(whole.body, copies);
  for (const Binding& binding : body.bindings)
    if (const auto* bound = binding.as<VarBinding>();
        bound && body.result.same_as(bound->var) && bound->value.is<Tuple>())
      body.result = bound->value;
  if (const auto* tuple = body.result->struct_info.as<TupleStructInfo>(); tuple && !body.result.is<Tuple>()) {
    std::vector<Expr> items;
    for (size_t i = 0; i < tuple->items.size(); ++i) items.push_back(bind_item(body.result, i, "item", body.bindings));
    body.result = with_struct_info(make<Tuple>(std::move(items)), body.result->struct_info);
  }
  return body;
}

void Backward::bind(const Var& var, const Expr& value, Bindings& bindings) {
  builder_.bind(var, value);
  bindings.push_back(make<VarBinding>(value, var));
  note_active(bindings.back());
}

Expr Backward::bind_item(const Expr& tuple, size_t index, const std::string& name, Bindings& bindings) {
  const StructInfo& info = tuple->struct_info.as<TupleStructInfo>()->items.at(index);
  const Var item = relax::relax_var(name, info, true);
  bind(item, with_struct_info(make<TupleGetItem>(tuple, static_cast<int64_t>(index)), info), bindings);
  return item;
}

bool carries_gradient(const StructInfo& info) {
  const auto* tensor = info ? info.as<TensorStructInfo>() : nullptr;
  if (!tensor) return false;
  const ir::DType t = tensor->dtype;
  return t == ir::DType::float_(16) || t == ir::DType::bfloat16() || t == ir::DType::float32() ||
         t == ir::DType::float_(64);
}

support::Result<Expr> zeros_like(BlockBuilder& builder, const Expr& e) {
  const auto* info = as_tensor(e);
  if (!info || !info->shape) return no_gradient_of(e, "a gradient of a tensor of unknown shape is asked for");
  return builder.call(ops::full, {make<relax::ShapeExpr>(*info->shape), ops::build::scalar(info->dtype, 0)});
}

bool Backward::is_active(const Expr& e) const {
  if (!e) return false;
  if (const auto* tuple = e.as<Tuple>())
    return std::any_of(tuple->items.begin(), tuple->items.end(), [&](const Expr& item) { return is_active(item); });
  return active_.count(e.get()) != 0;
}

bool Backward::depends(const Expr& value) const {
  if (const auto* item = value.as<TupleGetItem>()) return is_active(item->tuple);
  if (const auto* call = value.as<Call>())
    return std::any_of(call->args.begin(), call->args.end(), [&](const Expr& arg) { return is_active(arg); });
  return is_active(value);
}

void Backward::note_active(const Binding& binding) {
  const auto* cast = binding.as<MatchCast>();
  const Var& var = cast ? cast->var : binding.as<VarBinding>()->var;
  const std::vector<StructInfo> parts = items_of(var->struct_info);
  if (std::none_of(parts.begin(), parts.end(), carries_gradient)) return;
  if (depends(cast ? cast->value : binding.as<VarBinding>()->value)) active_.insert(var.get());
}

support::Status Backward::add(const Expr& target, const Expr& adjoint) {
  return adjoint && is_active(target) ? add_item(target, 0, adjoint) : support::success();
}

support::Status Backward::add_item(const Expr& var, size_t item, const Expr& adjoint) {
  std::vector<Expr>& all = adjoints_[var.get()];
  if (all.size() <= item) all.resize(item + 1);
  Expr& own = all[item];
  if (!own)
    own = adjoint;
  else if (!support::flip(gradient_forgets_a_use))
    own = TRY(builder_.call(ops::add, {own, adjoint}));
  return support::success();
}

Expr Backward::of(const Expr& var) const {
  const auto it = adjoints_.find(var.get());
  return it == adjoints_.end() || it->second.empty() ? Expr() : it->second[0];
}

support::Status Backward::run(const std::vector<Binding>& bindings) {
  for (size_t k = bindings.size(); k-- > 0;) {
    const auto* cast = bindings[k].as<MatchCast>();
    const Expr value = cast ? cast->value : bindings[k].as<VarBinding>()->value;
    const Expr var = cast ? Expr(cast->var) : Expr(bindings[k].as<VarBinding>()->var);
    if (!is_active(var) || !adjoints_.count(var.get())) continue;
    builder_.set_origin(value->origin());
    TRY(reverse(var, value));
  }
  return support::success();
}

support::Status Backward::reverse(const Expr& var, const Expr& value) {
  const std::vector<Expr> own = adjoints_.at(var.get());
  if (const auto* item = value.as<TupleGetItem>())
    return add_item(item->tuple, static_cast<size_t>(item->index), own.at(0));
  if (const auto* tuple = value.as<Tuple>()) {
    for (size_t i = 0; i < own.size(); ++i) TRY(add(tuple->items[i], own[i]));
    return support::success();
  }
  if (value.is<VarNode>()) {
    for (size_t i = 0; i < own.size(); ++i)
      if (own[i]) TRY(add_item(value, i, own[i]));
    return support::success();
  }
  if (value.is<Call>()) {
    std::vector<Expr> adjoints = own;
    adjoints.resize(items_of(var->struct_info).size());
    return reverse_call(*value.as<Call>(), adjoints);
  }
  return no_gradient_of(value, "no gradient goes through " + std::string(value->node_class().name));
}

support::Status Backward::reverse_call(const Call& call, const std::vector<Expr>& adjoints) {
  const Expr value(&call);
  const Operator* op = callee_operator(call);
  if (!op) return no_gradient_of(value, "no gradient goes through a call of a function");
  if (op == &relax::branch_operator) return reverse_branch(value, adjoints);
  if (op == &relax::loop_operator) return reverse_loop(value, adjoints);
  if (op == &ops::take && note_taken(call, adjoints.at(0))) return support::success();
  if (op->gradient && adjoints.size() == 1) {
    const std::vector<Expr> of_args = TRY(op->gradient(builder_, call, adjoints[0]));
    for (size_t i = 0; i < of_args.size(); ++i) TRY(add(call.args[i], of_args[i]));
    if (!of_args.empty()) return support::success();
  }
  if (op != &relax::call_tir_operator && std::holds_alternative<relax::RuntimeKernel>(op->meaning))
    return no_gradient_of(value, "the operator " + std::string(op->name) + " has no gradient");
  std::string name = as_call_tir(value) ? as_call_tir(value)->function : std::string(op->name);
  std::replace(name.begin(), name.end(), '.', '_');
  support::Status done = support::catch_diagnostics([&] { return reverse_program(name, value, adjoints); });
  if (done.ok()) return done;
  const support::Diagnostic& why = done.diagnostics()[0];
  if (why.code == codes::no_gradient) return done;
  return no_gradient_of(value, "the operator " + name + " has no gradient", {{why.place, why.message}});
}

support::Status Backward::reverse_program(const std::string& name, const Expr& value,
                                          const std::vector<Expr>& adjoints) {
  const CallProgram program = TRY(program_of(builder_.module(), value));
  tir::AdjointRequest request{program.args.size(), {}, {}};
  std::vector<Expr> args = program.args;
  std::vector<StructInfo> infos;
  for (const Expr& arg : program.args) {
    request.wanted.push_back(is_active(arg) && carries_gradient(arg->struct_info));
    if (request.wanted.back()) infos.push_back(arg->struct_info);
  }
  if (infos.empty()) return support::success();
  for (const Expr& adjoint : adjoints) {
    request.given.push_back(static_cast<bool>(adjoint));
    if (adjoint) args.push_back(adjoint);
  }
  const tir::Function backward = tir::adjoint_program(program.function, request);
  const std::string known = builder_.add_function(backward, name + "_adjoint");
  const Expr results =
      builder_.emit(TRY(relax::call_tir(known, std::move(args), infos, program.scalars)), name + "_adjoint");
  int64_t next = 0;
  for (size_t i = 0; i < program.args.size(); ++i)
    if (request.wanted[i])
      TRY(add(program.args[i], infos.size() == 1 ? results : builder_.tuple_item(results, next++)));
  return support::success();
}

// One side of a branch, backwards: a function of what that side takes, of all that is wanted, and of the adjoints of
// the results. It gives the adjoints of what is wanted: zeros for what only the other side takes.
support::Result<Callee> Backward::reversed_callee(const Callee& callee, const std::vector<Expr>& wanted,
                                                  const std::vector<Expr>& adjoints) {
  const auto function = expanded_.find_as<relax::FunctionNode>(callee.function);
  support::require(static_cast<bool>(function), "a branch calls a function of the module");
  builder_.begin_scope();
  builder_.begin_dataflow();
  relax::Replacement copies;
  std::vector<Var> params = copy_parameters(function->params, copies);
  Backward inner(builder_, expanded_);
  std::vector<Expr> args = callee.args;
  const auto parameter = [&](const Expr& arg, const std::string& name) {
    args.push_back(arg);
    params.push_back(relax::relax_var(name, arg->struct_info));
    return params.back();
  };
  for (size_t k = 0; k < callee.args.size(); ++k)
    if (is_active(callee.args[k]) && carries_gradient(callee.args[k]->struct_info)) inner.want(params[k]);
  const CopiedBody body = TRY(inner.copy(function->body, std::move(copies)));
  for (size_t k = 0; k < adjoints.size(); ++k) {
    if (!adjoints[k]) continue;
    const Expr given = parameter(adjoints[k], "adjoint_" + std::to_string(k));
    TRY(inner.add(body.result.as<Tuple>()->items.at(k), given));
  }
  TRY(inner.run(body.bindings));
  std::vector<Expr> results;
  std::vector<StructInfo> infos;
  for (const Expr& arg : wanted) {
    Expr sum;
    for (size_t k = 0; k < callee.args.size(); ++k)
      if (const Expr own = callee.args[k].same_as(arg) ? inner.of(params[k]) : Expr())
        sum = sum ? TRY(builder_.call(ops::add, {sum, own})) : own;
    if (!sum) sum = TRY(zeros_like(builder_, parameter(arg, "like_" + std::to_string(results.size()))));
    results.push_back(builder_.emit_output(std::move(sum)));
    infos.push_back(results.back()->struct_info);
  }
  const StructInfo info = make<TupleStructInfo>(std::move(infos));
  const Expr body_of_all = builder_.end_scope(with_struct_info(make<Tuple>(std::move(results)), info));
  const relax::Function made = make<relax::FunctionNode>(std::move(params), body_of_all, info, true, function->attrs);
  return Callee{builder_.add_function(made, callee.function + "_adjoint"), std::move(args)};
}

// The branch is taken again, by the same condition.
support::Status Backward::reverse_branch(const Expr& value, const std::vector<Expr>& adjoints) {
  const relax::Branch branch = *as_branch(value);
  std::vector<Expr> wanted;
  std::vector<StructInfo> infos;
  for (const std::vector<Expr>* args : {&branch.then.args, &branch.otherwise.args})
    for (const Expr& arg : *args) {
      const bool met = std::any_of(wanted.begin(), wanted.end(), [&](const Expr& e) { return e.same_as(arg); });
      if (met || !is_active(arg) || !carries_gradient(arg->struct_info)) continue;
      wanted.push_back(arg);
      infos.push_back(arg->struct_info);
    }
  if (wanted.empty()) return support::success();
  const relax::Branch back{branch.condition, TRY(reversed_callee(branch.then, wanted, adjoints)),
                           TRY(reversed_callee(branch.otherwise, wanted, adjoints))};
  const Expr all = builder_.emit(TRY(make_branch(back, std::move(infos), value->origin())), "branch_adjoint");
  for (size_t k = 0; k < wanted.size(); ++k) TRY(add(wanted[k], builder_.tuple_item(all, static_cast<int64_t>(k))));
  return support::success();
}

}  // namespace lathe::ops::gradient
