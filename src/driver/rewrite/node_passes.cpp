#include "driver/rewrite/node_passes.h"

#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "interchange/onnx/import.h"
#include "interchange/onnx/nodes/write_model.h"

namespace lathe::driver {

using ir::IRModule;
using ir::PassContext;
using support::Result;

namespace {

constexpr const char drop_inputs[] = "drop_unused_inputs";
constexpr int64_t shape_like = 64 << 10;  // bytes of an input that shapes may depend on

}  // namespace

std::vector<ir::PassRow> node_pipeline() {
  return {{"fold_batch_norm", fold_batch_norm_nodes},
          {"fold_constants", graph::fold_constants},
          {"eliminate_common_subexpressions", graph::eliminate_common_subexpressions},
          {"eliminate_dead_code", graph::eliminate_dead_code},
          {drop_inputs, drop_unused_inputs}};
}

std::vector<std::string> default_node_passes() {
  std::vector<std::string> names;
  for (const ir::PassRow& row : node_pipeline())
    if (row.name != drop_inputs) names.push_back(row.name);
  return names;
}

Result<IRModule> drop_unused_inputs(IRModule module, const PassContext&) {
  const auto main = module.find_as<relax::FunctionNode>("main");
  const auto uses = graph::count_uses(main);
  std::vector<relax::Var> kept;
  for (const relax::Var& param : main->params)
    if (uses.count(param.get())) kept.push_back(param);
  if (kept.size() == main->params.size()) return module;
  module.set("main", graph::make_function(std::move(kept), graph::all_bindings(main),
                                          main->body.as<relax::SeqExpr>()->body, main->attrs, main->is_pure));
  return module;
}

ir::Evaluator node_evaluator(ir::Evaluator inner) {
  return [inner = std::move(inner)](const IRModule& module, const std::string& function,
                                    const std::vector<ir::TensorData>& inputs) -> Result<std::vector<ir::TensorData>> {
    const auto main = module.find_as<relax::FunctionNode>(function);
    std::vector<relax::Var> params;
    std::vector<ir::TensorData> left;
    std::vector<relax::Binding> bindings;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const relax::Var& param = main->params[i];
      if (inputs[i]->byte_size() > shape_like) {
        params.push_back(param);
        left.push_back(inputs[i]);
      } else {
        bindings.push_back(ir::make<relax::VarBinding>(relax::constant(inputs[i]), param));
      }
    }
    for (const relax::Binding& binding : graph::all_bindings(main)) bindings.push_back(binding);
    IRModule bound;
    bound.set("main",
              graph::make_function(std::move(params), std::move(bindings), main->body.as<relax::SeqExpr>()->body, {}));
    onnx::WrittenModel written = TRY(onnx::write_onnx(bound));
    const onnx::ModelBytes bytes{std::make_shared<const std::string>(std::move(written.model)), "constants", ""};
    return inner(TRY(onnx::import_onnx(bytes)), "main", left);
  };
}

}  // namespace lathe::driver
