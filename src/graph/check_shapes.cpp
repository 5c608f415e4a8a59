#include <unordered_set>

#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "ir/structural.h"
#include "ir/visit.h"
#include "relax/assert_op.h"
#include "relax/infer.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(check_shapes_forgets, "graph_test", "a shape that only the run can check is not checked");

namespace {

struct Check {
  Assumption assumed;
  ir::Origin origin;
};

class ShapeChecks {
 public:
  explicit ShapeChecks(const Function& function) : function_(function) {}

  Result<Function> run() {
    const std::vector<Binding> bindings = all_bindings(function_);
    for (const Binding& binding : bindings) TRY(note(binding));
    if (open_.empty()) return function_;
    for (const Var& param : function_->params) define(param->struct_info);
    // As early as their symbols are known: a fused group may begin anywhere after its operands.
    emit_ready();
    for (const Binding& binding : bindings) {
      // What a node says of the integers that it read comes before what follows from them.
      const auto* bound = binding.as<VarBinding>();
      if (!bound || !as_assert(bound->value)) emit_ready();
      made_.push_back(binding);
      if (const auto* cast = binding.as<MatchCast>()) define(cast->struct_info);
    }
    emit_ready();
    Function checked = make_function(function_->params, std::move(made_), function_->body.as<SeqExpr>()->body,
                                     function_->attrs, function_->is_pure);
    return ir::with_origin(std::move(checked), function_->origin());
  }

 private:
  support::Status note(const Binding& binding) {
    const auto* bound = binding.as<VarBinding>();
    const auto* call = bound ? bound->value.as<Call>() : nullptr;
    const Operator* op = call ? callee_operator(*call) : nullptr;
    if (!op) return support::success();
    Assumptions assumed;
    TRY(op->infer(InferContext{*op, call->args, call->attributes.get(), call->struct_info_args, &assumed}));
    for (Assumption& each : assumed) {
      const auto same = [&](const Check& known) {
        return ir::structural_equal(known.assumed.actual, each.actual) &&
               ir::structural_equal(known.assumed.expected, each.expected);
      };
      if (std::any_of(open_.begin(), open_.end(), same)) continue;
      open_.push_back({std::move(each), call->origin()});
    }
    return support::success();
  }

  void define(const StructInfo& info) {
    for (const ir::Var& symbol : ir::free_vars(info)) defined_.insert(symbol.get());
  }

  bool is_ready(const Assumption& assumed) const {
    const auto known = [&](const ir::Expr& e) {
      const auto symbols = ir::free_vars(e);
      return std::all_of(symbols.begin(), symbols.end(),
                         [&](const ir::Var& symbol) { return defined_.count(symbol.get()) > 0; });
    };
    return known(assumed.actual) && known(assumed.expected);
  }

  void emit_ready() {
    std::vector<Check> waiting;
    for (Check& check : open_) {
      if (!is_ready(check.assumed)) {
        waiting.push_back(std::move(check));
        continue;
      }
      if (support::flip(check_shapes_forgets)) continue;
      const StructInfo expected = make<ShapeStructInfo>(OptionalShape(Shape{check.assumed.expected}));
      Binding binding = make<MatchCast>(Expr(make<ShapeExpr>(Shape{check.assumed.actual})), expected,
                                        relax_var("checked", expected, true));
      made_.push_back(ir::with_origin(std::move(binding), check.origin));
    }
    open_ = std::move(waiting);
  }

  const Function& function_;
  std::vector<Check> open_;
  std::vector<Binding> made_;
  std::unordered_set<const ir::Node*> defined_;
};

}  // namespace

Result<IRModule> check_shapes(IRModule module, const PassContext&) {
  const std::vector<ir::IRModule::Entry> functions = module.functions();
  for (const auto& [name, function] : functions) {
    if (!function.is<relax::FunctionNode>() || !ir::cast<relax::FunctionNode>(function)->body.is<SeqExpr>()) continue;
    module.set(name, TRY(ShapeChecks(ir::cast<relax::FunctionNode>(function)).run()));
  }
  return module;
}

}  // namespace lathe::graph
