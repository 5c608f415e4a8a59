#include <unordered_set>

#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "ir/visit.h"
#include "relax/assert_op.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(eliminate_dead_code_drops_checks, "graph_test", "a check at run time goes when nobody uses what it checks");

namespace {

// A call may be dropped unless it is a check, or of a function we know nothing of.
bool is_pure(const Expr& value) {
  const auto* call = value.as<Call>();
  return !call || (!call->callee.is<ExternFunc>() && callee_operator(*call) != &assert_operator);
}

// The function without them; `callees`: the functions that what is left names.
Function drop_unused(const Function& function, std::vector<std::string>& callees) {
  const std::vector<Binding> bindings = all_bindings(function);
  std::unordered_set<const ir::Node*> live;
  live.reserve(bindings.size());
  const auto mark = [&](const Expr& e) {
    ir::pre_order(e, [&](const NodeRef& n) {
      if (const auto* callee = n.as<GlobalVar>()) callees.push_back(callee->name);
      if (n.is<VarNode>()) live.insert(n.get());
      return !n.is<VarNode>();
    });
  };
  const Expr result = function->body.as<SeqExpr>()->body;
  mark(result);
  std::vector<Binding> kept;
  for (auto it = bindings.rbegin(); it != bindings.rend(); ++it) {
    if (const auto* cast = it->as<MatchCast>()) {  // checks at run time: stays
      if (!live.count(cast->var.get()) && support::flip(eliminate_dead_code_drops_checks)) continue;
      mark(cast->value);
      kept.push_back(*it);
      continue;
    }
    const auto& bound = *it->as<VarBinding>();
    const bool used = live.count(bound.var.get()) || !is_pure(bound.value);
    if (!used) continue;
    mark(bound.value);
    kept.push_back(*it);
  }
  if (kept.size() == bindings.size()) return function;
  std::reverse(kept.begin(), kept.end());
  return ir::with_origin(make_function(function->params, std::move(kept), result, function->attrs, function->is_pure),
                         function->origin());
}

}  // namespace

support::Result<ir::IRModule> eliminate_dead_code(ir::IRModule module, const ir::PassContext&) {
  const std::vector<ir::IRModule::Entry> functions = module.functions();
  // Each function's callees; then what those that others may call reach.
  std::unordered_map<std::string, std::vector<std::string>> callees;
  std::vector<std::string> open;
  for (const auto& [name, function] : functions) {
    if (!function->attrs.get_or("private", false)) open.push_back(name);
    if (!function.is<relax::FunctionNode>()) continue;
    module.set(name, drop_unused(ir::cast<relax::FunctionNode>(function), callees[name]));
  }
  std::unordered_set<std::string> reached(open.begin(), open.end());
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    for (const std::string& callee : callees[name])
      if (reached.insert(callee).second) open.push_back(callee);
  }
  for (const auto& [name, function] : functions)
    if (!reached.count(name)) module.erase(name);
  return module;
}

}  // namespace lathe::graph
