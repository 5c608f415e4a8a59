#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(eliminate_common_subexpressions_attributes, "graph_test", "calls that differ in attributes count as equal");

support::Result<ir::IRModule> eliminate_common_subexpressions(ir::IRModule module, const ir::PassContext&) {
  TRY(change_functions(module, [](const std::string&, const Function& function) {
    std::unordered_map<support::Hash128, std::vector<std::pair<Expr, Var>>> seen;
    const auto reuse = [&](Emitter&, const Var& var, const Expr& value) -> Result<Expr> {
      const auto* call = value.as<Call>();
      if (call ? !callee_operator(*call) && !call->callee.is<GlobalVar>() : !value.is<TupleGetItem>()) return Expr();
      Expr key = value;
      if (call && support::flip(eliminate_common_subexpressions_attributes))
        key = ir::with(*call, [](Call& copy) { copy.attributes = {}; });
      auto& candidates = seen[ir::structural_hash(key, /*map_free_vars=*/false)];
      for (const auto& [other, first] : candidates)
        if (ir::structural_equal(key, other)) return Expr(first);
      candidates.emplace_back(key, var);
      return Expr();
    };
    return rewrite_bindings(function, reuse);
  }));
  return module;
}

}  // namespace lathe::graph
