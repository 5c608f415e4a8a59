#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "relax/block_builder.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(expand_composites_skips_inner, "graph_test", "a composite inside a composite is taken for its operand");

namespace {

constexpr int deepest_nesting = 16;  // a composite of composites of …

Result<Expr> expand(Emitter& emitter, const Expr& value, int depth) {
  const auto* call = value.as<Call>();
  const Operator* op = call ? callee_operator(*call) : nullptr;
  const auto* composite = op ? std::get_if<Composite>(&op->meaning) : nullptr;
  if (!composite) return Expr();
  support::require(depth < deepest_nesting, "composites are nested without end");
  BlockBuilder builder;
  builder.set_origin(value->origin());
  builder.begin_scope();
  Expr result = TRY((*composite)(builder, *call));
  const Expr scope = builder.end_scope(std::move(result));
  const auto& sequence = *scope.as<SeqExpr>();
  for (const BindingBlock& block : sequence.blocks)
    for (const Binding& binding : block->bindings) {
      const auto* bound = binding.as<VarBinding>();
      support::require(bound, "a composite binds values only");
      const Expr inner = emitter.replaced(bound->value);
      Expr expanded = TRY(expand(emitter, inner, depth + 1));
      if (expanded && support::flip(expand_composites_skips_inner)) expanded = inner.as<Call>()->args[0];
      emitter.bind(bound->var, expanded ? expanded : inner);
    }
  return emitter.replaced(sequence.body);
}

}  // namespace

support::Result<ir::IRModule> expand_composites(ir::IRModule module, const ir::PassContext&) {
  return rewrite_functions(std::move(module),
                           [](Emitter& emitter, const Var&, const Expr& value) { return expand(emitter, value, 0); });
}

}  // namespace lathe::graph
