#include <unordered_map>
#include <unordered_set>

#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "ir/structural.h"
#include "ir/visit.h"
#include "relax/assert_op.h"
#include "relax/infer.h"
#include "relax/mismatch.h"
#include "relax/strings.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(check_shapes_forgets, "graph_test", "a shape that only the run can check is not checked");

namespace {

struct Check {
  Assumption assumed;
  Message message;
  ir::Origin origin;
};

std::string node_of(const ir::NodeRef& at) {
  const auto* node = at && at->origin() ? std::get_if<support::ModelNode>(at->origin().get()) : nullptr;
  return node ? node->node : "";
}

class ShapeChecks {
 public:
  explicit ShapeChecks(const Function& function) : function_(function) {}

  Result<Function> run() {
    const std::vector<Binding> bindings = all_bindings(function_);
    std::vector<std::pair<const Call*, Assumptions>> assuming;
    for (const Binding& binding : bindings) {
      const auto* bound = binding.as<VarBinding>();
      const auto* call = bound ? bound->value.as<Call>() : nullptr;
      const Operator* op = call ? callee_operator(*call) : nullptr;
      if (!op) continue;
      Assumptions assumed;
      TRY(op->infer(InferContext{*op, call->args, call->attributes.get(), call->struct_info_args, &assumed}));
      if (!assumed.empty()) assuming.emplace_back(call, std::move(assumed));
    }
    if (assuming.empty()) return function_;
    for (const Binding& binding : bindings) {
      const auto* bound = binding.as<VarBinding>();
      const std::string by = node_of(binding);
      made_by_[var_of_binding(binding).get()] = by.empty() && bound ? node_of(bound->value) : by;
    }
    for (auto& [call, assumed] : assuming) note(*call, std::move(assumed));
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
  void note(const Call& call, Assumptions assumed) {
    const Message operands = operands_of(call);
    for (Assumption& each : assumed) {
      const auto same = [&](const Check& known) {
        return ir::structural_equal(known.assumed.actual, each.actual) &&
               ir::structural_equal(known.assumed.expected, each.expected);
      };
      if (std::any_of(open_.begin(), open_.end(), same)) continue;
      Message message = mismatch(each.actual, each.expected);
      message << operands;
      open_.push_back({std::move(each), std::move(message), call.origin()});
    }
  }

  // What the operands are and where they come from.
  Message operands_of(const Call& call) const {
    Message message;
    for (const Expr& arg : call.args) {
      const auto* info = arg ? as_tensor(arg) : nullptr;
      if (!info || !info->shape) continue;
      message << "; " << source_of(arg, node_of(ir::NodeRef(&call))) << " is "
              << (info->dtype == string_dtype ? "string" : info->dtype.str()) << *info->shape;
    }
    return message;
  }

  std::string source_of(const Expr& arg, const std::string& node) const {
    const auto* var = arg.as<VarNode>();
    if (!var) return "a constant";
    for (const Var& param : function_->params)
      if (param.get() == var) return "'" + var->name + "', the graph's input,";
    const auto made = made_by_.find(var);
    const std::string by = made == made_by_.end() ? "" : made->second;
    if (by.empty()) return "'" + var->name + "'";
    return by == node ? "what it computes on the way" : "the output of '" + by + "'";
  }

  void define(const StructInfo& info) {
    for (const ir::Var& symbol : ir::free_vars(info)) defined_.insert(symbol.get());
  }

  bool is_ready(const Check& check) const {
    const auto known = [&](const ir::Expr& e) {
      const auto symbols = ir::free_vars(e);
      return std::all_of(symbols.begin(), symbols.end(),
                         [&](const ir::Var& symbol) { return defined_.count(symbol.get()) > 0; });
    };
    const std::vector<ir::Expr>& said = check.message.numbers();
    return known(check.assumed.actual) && known(check.assumed.expected) && std::all_of(said.begin(), said.end(), known);
  }

  void emit_ready() {
    std::vector<Check> waiting;
    for (Check& check : open_) {
      if (!is_ready(check)) {
        waiting.push_back(std::move(check));
        continue;
      }
      if (support::flip(check_shapes_forgets)) continue;
      const ir::Expr holds = ir::eq(check.assumed.actual, check.assumed.expected);
      const Expr asked = make_assert(holds, check.message, check.origin).value_or_throw();
      Binding binding = make<VarBinding>(asked, relax_var("checked", asked->struct_info, true));
      made_.push_back(ir::with_origin(std::move(binding), check.origin));
    }
    open_ = std::move(waiting);
  }

  const Function& function_;
  std::vector<Check> open_;
  std::vector<Binding> made_;
  std::unordered_set<const ir::Node*> defined_;
  std::unordered_map<const VarNode*, std::string> made_by_;  // the node of the model
};

}  // namespace

Result<IRModule> check_shapes(IRModule module, const PassContext&) {
  TRY(change_functions(module, [](const std::string&, const Function& function) -> Result<Function> {
    if (!function->body.is<SeqExpr>()) return function;
    return ShapeChecks(function).run();
  }));
  return module;
}

}  // namespace lathe::graph
