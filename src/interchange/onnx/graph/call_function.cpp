#include "interchange/onnx/codes.h"
#include "interchange/onnx/graph/graph_import.h"
#include "interchange/onnx/read/names.h"
#include "onnx_schema.pb.h"

namespace lathe::onnx {

using schema::FunctionProto;
using schema::NodeProto;
using support::Diagnostic;
using support::DiagnosticError;

bool GraphImport::call(Scope& outer, const NodeProto& node, const FunctionProto& function,
                       const std::vector<GraphValue*>& inputs, NodeAttributes& given, const support::ModelNode& place) {
  const auto wrong = [&](support::Code code, const std::string& message) {
    throw DiagnosticError(Diagnostic{
        .code = code, .place = place, .message = "the function " + in_quotes(function.name()) + " " + message});
  };
  if (static_cast<int>(inputs.size()) > function.input_size())
    wrong(codes::wrong_node, "takes " + std::to_string(function.input_size()) + " inputs, but the node has " +
                                 std::to_string(inputs.size()));
  if (node.output_size() > function.output_size())
    wrong(codes::wrong_node, "gives " + std::to_string(function.output_size()) + " outputs, but the node has " +
                                 std::to_string(node.output_size()));

  for (const auto& attribute : function.attribute_proto()) given.add_default(attribute);
  Scope inner;
  inner.opsets = opsets_of(function, outer.opsets);
  inner.given = &given;
  inner.prefix = place.node + "/";
  NodeList list;
  list.within = "the function " + in_quotes(function.name()) + ": ";
  std::unordered_set<std::string>& absent = inner.absent;
  for (int i = 0; i < function.input_size(); ++i) {
    const std::string& name = function.input(i);
    const bool is_there = static_cast<size_t>(i) < inputs.size() && inputs[static_cast<size_t>(i)];
    if (is_there)
      inner.values[name] = *inputs[static_cast<size_t>(i)];
    else
      absent.insert(name);
    list.given.insert(name);
  }
  for (const NodeProto& each : function.node()) list.nodes.push_back(&each);
  list.outputs.assign(function.output().begin(), function.output().end());
  const std::vector<int> order = order_nodes(model_, list).value_or_throw();
  inner.end = Scope::End::outer;
  inner.outer = &outer;
  inner.bind = [&](Scope& self, Scope& caller) {
    for (int i = 0; i < node.output_size(); ++i) {
      if (node.output(i).empty()) continue;
      const auto it = self.values.find(function.output(i));
      if (it == self.values.end()) wrong(codes::missing_value, "needs an input that the node leaves out");
      caller.values[node.output(i)] = it->second;
    }
  };
  // An input that the call leaves out has no value in the nodes that read it.
  convert_nodes(inner, list.nodes, order);
  inner.bind(inner, outer);
  return true;
}

}  // namespace lathe::onnx
