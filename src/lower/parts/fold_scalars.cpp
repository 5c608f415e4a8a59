#include "lower/parts/fold_scalars.h"

#include "graph/rewrite_bindings.h"
#include "ir/build.h"
#include "ir/visit.h"
#include "lower/legalize/versions.h"
#include "relax/call_tir.h"
#include "support/mutation.h"
#include "tir/scalars.h"

namespace lathe::lower {

LATHE_FAULT(fold_scalars_by_the_last_call, "lower_test", "a scalar has the value that the last call gives it");

namespace {

// What the calls of each kernel give its scalars: nothing where two give different values, or a symbol.
std::map<std::string, tir::ScalarValues> scalars_given(const ir::IRModule& module) {
  std::map<std::string, tir::ScalarValues> result;
  for (const auto& [name, function] : module) {
    if (!function.is<relax::FunctionNode>()) continue;
    ir::post_order(function, [&](const ir::NodeRef& node) {
      const auto* node_call = node.as<relax::Call>();
      const auto call = node_call ? relax::as_call_tir(relax::Expr(node_call)) : std::nullopt;
      if (!call || call->scalars.empty()) return;
      tir::ScalarValues values;
      for (const ir::Expr& scalar : call->scalars) values.push_back(ir::as_int(scalar));
      tir::ScalarValues& known = result.try_emplace(call->function, values).first->second;
      for (size_t i = 0; i < known.size(); ++i)
        if (i >= values.size() || known[i] != values[i]) known[i] = std::nullopt;
      if (support::flip(fold_scalars_by_the_last_call)) known = values;
    });
  }
  return result;
}

}  // namespace

support::Result<ir::IRModule> fold_scalars(ir::IRModule module, const ir::PassContext&) {
  std::map<std::string, tir::ScalarValues> folded;
  for (auto& [name, values] : scalars_given(module)) {
    const auto kernel = module.find_as<tir::PrimFunc>(name);
    const bool is_known =
        std::any_of(values.begin(), values.end(), [](const auto& value) { return value.has_value(); });
    if (!kernel || !is_known || tir::scalar_params(*kernel).size() != values.size()) continue;
    if (!versions_of(*kernel).empty()) continue;  // a version takes its sizes by position
    module.set(name, tir::specialize(kernel, values));
    folded.emplace(name, std::move(values));
  }
  if (folded.empty()) return module;
  return graph::rewrite_functions(
      std::move(module),
      [&](graph::Emitter&, const relax::Var&, const relax::Expr& value) -> support::Result<relax::Expr> {
        const auto call = relax::as_call_tir(value);
        const auto kernel = call ? folded.find(call->function) : folded.end();
        if (kernel == folded.end()) return relax::Expr();
        std::vector<ir::Expr> scalars;
        for (size_t i = 0; i < call->scalars.size(); ++i)
          if (!kernel->second[i]) scalars.push_back(call->scalars[i]);
        return relax::Expr(ir::with(*value.as<relax::Call>(), [&](relax::Call& copy) {
          copy.args.resize(2);
          if (!scalars.empty()) copy.args.push_back(ir::make<relax::ShapeExpr>(std::move(scalars)));
        }));
      });
}

}  // namespace lathe::lower
