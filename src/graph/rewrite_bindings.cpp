#include "graph/rewrite_bindings.h"

#include <unordered_set>

#include "ir/match.h"
#include "ir/visit.h"
#include "ops/attributes.h"
#include "relax/outline.h"

namespace lathe::graph {

const Call* as_call_of(const Expr& e, std::string_view name) {
  const auto* call = e ? e.as<Call>() : nullptr;
  const Operator* op = call ? callee_operator(*call) : nullptr;
  return op && op->name == name ? call : nullptr;
}

std::vector<Binding> all_bindings(const Function& function) {
  std::vector<Binding> all;
  if (const auto* body = function->body.as<SeqExpr>())
    for (const BindingBlock& block : body->blocks)
      all.insert(all.end(), block->bindings.begin(), block->bindings.end());
  return all;
}

const Var& var_of_binding(const Binding& binding) {
  if (const auto* bound = binding.as<VarBinding>()) return bound->var;
  return binding.as<MatchCast>()->var;
}

namespace {

void each_var(const Expr& e, support::function_ref<void(const VarNode&)> visit) {
  ir::pre_order(e, [&](const NodeRef& n) {
    if (const auto* var = n.as<VarNode>()) {
      visit(*var);
      return false;  // a variable's struct info holds no relax variables
    }
    return true;
  });
}

const Expr& value_of_binding(const Binding& binding) {
  if (const auto* bound = binding.as<VarBinding>()) return bound->value;
  return binding.as<MatchCast>()->value;
}

using Vars = std::unordered_set<const ir::Node*>;
Vars vars_of(const Expr& e) {
  Vars vars;
  each_var(e, [&](const VarNode& var) { vars.insert(&var); });
  return vars;
}

// Results are plain variables, everything else is a dataflow variable.
bool is_as_it_should_be(const Var& var, const Vars& results) {
  return var->is_dataflow == (results.count(var.get()) == 0);
}

}  // namespace

std::unordered_map<const ir::Node*, int> count_uses(const Function& function) {
  std::unordered_map<const ir::Node*, int> uses;
  const auto count = [&](const VarNode& var) { ++uses[&var]; };
  for (const Binding& binding : all_bindings(function)) each_var(value_of_binding(binding), count);
  if (const auto* body = function->body.as<SeqExpr>()) each_var(body->body, count);
  return uses;
}

Expr Emitter::emit(Expr value, const std::string& hint) {
  if (!value || is_leaf(value)) return value;
  Var var = ir::with_origin(relax_var(hint.empty() ? "lv" : hint, value->struct_info, true), *origin_);
  value = ir::with_origin(std::move(value), *origin_);
  change();
  bindings_.push_back(make<VarBinding>(std::move(value), var));
  return var;
}

void Emitter::keep(const Binding& binding) {
  if (is_changed_)
    bindings_.push_back(binding);
  else
    ++kept_;
}

void Emitter::change() {
  if (is_changed_) return;
  is_changed_ = true;
  bindings_.reserve(given_.size());
  bindings_.assign(given_.begin(), given_.begin() + static_cast<ptrdiff_t>(kept_));
}

void Emitter::bind(const Var& var, Expr value) {
  change();
  if (is_leaf(value)) {
    replaced_[var.get()] = std::move(value);
    return;
  }
  value = ir::with_origin(std::move(value), *origin_);
  bindings_.push_back(make<VarBinding>(std::move(value), var));
}

void Emitter::cast(const MatchCast& cast) {
  change();
  bindings_.push_back(ir::with_origin<BindingNode>(
      ir::with(cast, [&](MatchCast& copy) { copy.value = replaced(cast.value); }), *origin_));
}

Expr Emitter::replaced(const Expr& e) const { return replace_vars(e, replaced_); }

Result<Expr> Emitter::call(const Operator& op, std::vector<Expr> args, AttributesRef attributes,
                           const std::string& hint) {
  Expr value = TRY(make_call(op, std::move(args), std::move(attributes), *origin_));
  return emit(std::move(value), hint);
}

Expr Emitter::value_of(const Expr& var) const {
  if (!var || !var.is<VarNode>()) return {};
  if (known_values_ == 0) values_.reserve(given_.size());
  for (; known_values_ < count(); ++known_values_)
    if (const auto* bound = at(known_values_).as<VarBinding>()) values_[bound->var.get()] = &bound->value;
  const auto it = values_.find(var.get());
  return it == values_.end() ? Expr() : *it->second;
}

Function make_function(std::vector<Var> params, std::vector<Binding> bindings, Expr result, const Attributes& attrs,
                       bool is_pure) {
  const Vars results = vars_of(result);
  std::unordered_map<const ir::Node*, Expr> renamed;
  for (const Binding& binding : bindings)
    if (const Var& var = var_of_binding(binding); !is_as_it_should_be(var, results))
      renamed[var.get()] = relax_var(var->name, var->struct_info, !var->is_dataflow);
  if (!renamed.empty()) {
    for (Binding& binding : bindings) binding = replace_vars(std::move(binding), renamed);
    result = replace_vars(std::move(result), renamed);
  }
  StructInfo info = result->struct_info;
  std::vector<BindingBlock> blocks;
  if (!bindings.empty()) blocks.push_back(make<BindingBlockNode>(std::move(bindings), true));
  Expr body = with_struct_info(make<SeqExpr>(std::move(blocks), std::move(result)), info);
  return make<relax::FunctionNode>(std::move(params), std::move(body), info, is_pure, attrs);
}

class BindingRewriter {
 public:
  static Result<Function> run(const Function& function, const RewriteValue& rewrite) {
    const auto* body = function->body.as<SeqExpr>();
    support::require(body, "a relax function's body is a sequence");
    std::vector<Binding> joined;
    if (body->blocks.size() > 1) joined = all_bindings(function);
    const std::vector<Binding>& given = body->blocks.size() == 1 ? body->blocks[0]->bindings : joined;
    const Vars results = vars_of(body->body);
    bool is_made = body->blocks.size() <= 1 && (given.empty() || body->blocks[0]->is_dataflow);
    Emitter emitter;
    emitter.given_ = given;
    for (const Binding& binding : given) {
      is_made = is_made && is_as_it_should_be(var_of_binding(binding), results);
      const Expr& before = value_of_binding(binding);
      const Expr after = emitter.replaced_.empty() ? Expr() : emitter.replaced(before);
      const Expr& value = after ? after : before;
      emitter.origin_ = value->origin() ? &value->origin() : &binding->origin();
      if (const auto* cast = binding.as<MatchCast>()) {
        if (value.same_as(cast->value)) {
          emitter.keep(binding);
          continue;
        }
        emitter.change();
        emitter.bindings_.push_back(ir::with(*cast, [&](MatchCast& copy) { copy.value = value; }));
        continue;
      }
      const Var& var = binding.as<VarBinding>()->var;
      Expr result = TRY(rewrite(emitter, var, value));
      if ((!result || result.same_as(before)) && value.same_as(before) && !is_leaf(before) && before->struct_info) {
        emitter.keep(binding);
        continue;
      }
      if (!result) result = value;
      if (!is_leaf(result) && !result->struct_info) result = with_struct_info(std::move(result), var->struct_info);
      emitter.bind(var, std::move(result));
    }
    Expr result = emitter.replaced(body->body);
    if (is_made && !emitter.is_changed_ && result.same_as(body->body)) return function;
    emitter.change();
    Function made = make_function(function->params, std::move(emitter.bindings_), std::move(result), function->attrs,
                                  function->is_pure);
    return ir::with_origin(std::move(made), function->origin());
  }
};

Result<Function> rewrite_bindings(const Function& function, const RewriteValue& rewrite) {
  return BindingRewriter::run(function, rewrite);
}

support::Status change_functions(
    ir::IRModule& module, support::function_ref<Result<Function>(const std::string& name, const Function&)> change) {
  const std::vector<ir::IRModule::Entry> functions = module.functions();
  for (const auto& [name, function] : functions)
    if (function.is<relax::FunctionNode>())
      module.set(name, TRY(change(name, ir::cast<relax::FunctionNode>(function))));
  return support::success();
}

Result<ir::IRModule> rewrite_functions(ir::IRModule module, const RewriteValue& rewrite) {
  TRY(change_functions(
      module, [&](const std::string&, const Function& function) { return rewrite_bindings(function, rewrite); }));
  return module;
}

std::vector<int64_t> permuted_axes(const Call& permute) {
  const auto& axes = static_cast<const ops::PermuteDimsAttributes*>(permute.attributes.get())->axes;
  const int64_t rank = as_tensor(permute.args[0])->ndim;
  std::vector<int64_t> all;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t axis = axes ? (*axes)[static_cast<size_t>(i)] : rank - 1 - i;
    all.push_back(axis < 0 ? axis + rank : axis);
  }
  return all;
}

}  // namespace lathe::graph
