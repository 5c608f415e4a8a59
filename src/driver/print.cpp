#include "driver/print.h"

#include "interchange/onnx/nodes/node_call.h"
#include "relax/script/dialect.h"
#include "script/print.h"
#include "tir/script/dialect.h"

namespace lathe::driver {

std::string print(const ir::IRModule& module, const script::PrintOptions& options) {
  const auto graph = relax::script_dialect(onnx::operators_with_nodes());
  const script::Dialect* dialects[] = {&tir::script_dialect(), graph.get()};
  return script::print(module, options, dialects);
}

std::string print_node(const ir::NodeRef& node, const std::string& name, const script::PrintOptions& options) {
  const auto graph = relax::script_dialect(onnx::operators_with_nodes());
  const script::Dialect* dialects[] = {&tir::script_dialect(), graph.get()};
  if (node && node->node_class().family == ir::FunctionNode::family)
    return script::print_function(name, ir::detail::narrow<ir::FunctionNode>(node), options, dialects);
  return script::print(node, options, dialects);
}

}  // namespace lathe::driver
