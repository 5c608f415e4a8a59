#include "driver/interpreted.h"

#include "driver/codes.h"
#include "graph/passes.h"
#include "lower/legalize/legalize.h"
#include "lower/states/states.h"
#include "relax/interpret/evaluate.h"

namespace lathe::driver {

using support::Result;

Result<ir::IRModule> one_program_an_operator(ir::IRModule module) {
  return support::catch_diagnostics([&]() -> Result<ir::IRModule> {
    const std::vector<ir::PassRow> rows = {{"expand_composites", graph::expand_composites},
                                           {"legalize", lower::legalize, {"expand_composites"}}};
    return ir::run_passes(std::move(module), rows, {});
  });
}

Signature signature_of(const ir::IRModule& module) {
  Signature signature;
  const relax::Function main = module.find_as<relax::FunctionNode>("main");
  if (!main) return signature;
  signature.inputs = main->params;
  const relax::StructInfo result = main->ret_struct_info ? main->ret_struct_info : main->body->struct_info;
  if (const auto* tuple = result ? result.as<relax::TupleStructInfo>() : nullptr)
    signature.outputs = tuple->items;
  else
    signature.outputs = {result};
  const auto* names = main->attrs.get<ir::Value::List>("output_names");
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    const std::string* name = names && i < names->size() ? (*names)[i].get<std::string>() : nullptr;
    signature.output_names.push_back(name ? *name : "output_" + std::to_string(i));
  }
  const std::vector<lower::State> states = lower::states_of(*main);
  signature.inputs.resize(signature.inputs.size() - std::min(states.size(), signature.inputs.size()));
  const auto replaced = std::count_if(states.begin(), states.end(), [](const auto& one) { return !one.is_in_place(); });
  const size_t outputs = signature.outputs.size() - std::min(static_cast<size_t>(replaced), signature.outputs.size());
  signature.outputs.resize(outputs);
  signature.output_names.resize(outputs);
  return signature;
}

Result<InterpretedRef> Interpreted::make(ir::IRModule module) {
  auto made = std::make_shared<Interpreted>();
  if (!module.find_as<relax::FunctionNode>("main"))
    return support::Diagnostic{.code = codes::no_main, .message = "the module has no graph function 'main' to run"};
  made->signature_ = signature_of(module);
  made->module_ = std::move(module);
  return InterpretedRef(made);
}

Result<std::vector<ir::TensorData>> Interpreted::run(const std::vector<ir::TensorData>& inputs) const {
  return relax::evaluate(module_, "main", inputs);
}

}  // namespace lathe::driver
