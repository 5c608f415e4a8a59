#include "interchange/onnx/graph/names.h"

#include "interchange/onnx/codes.h"
#include "interchange/onnx/read/names.h"
#include "onnx_schema.pb.h"
#include "relax/strings.h"
#include "support/parallel.h"

namespace lathe::onnx {

using schema::GraphProto;
using schema::NodeProto;
using schema::TensorProto;
using support::Diagnostic;
using support::Diagnostics;
using support::Result;

namespace {

constexpr size_t many_bytes = 1 << 20;  // of a model, which several threads read

}  // namespace

Diagnostic refuse(const Model& model, support::Code code, std::string message) {
  return {.code = code, .place = model.place(), .message = std::move(message)};
}

Result<NodeList> list_nodes(const Model& model, const GraphProto& graph) {
  NodeList list;
  std::unordered_set<std::string> weights, inputs;
  const auto add_weight = [&](const std::string& name) -> support::Status {
    if (name.empty()) return refuse(model, codes::wrong_graph, "an initializer of the graph has no name");
    if (!weights.insert(name).second)
      return refuse(model, codes::duplicate_name, "two initializers of the graph are called " + in_quotes(name));
    return support::success();
  };
  for (const auto& tensor : graph.initializer()) TRY(add_weight(tensor.name()));
  for (const auto& tensor : graph.sparse_initializer()) TRY(add_weight(tensor.values().name()));
  for (const auto& input : graph.input())
    if (!inputs.insert(input.name()).second)
      return refuse(model, codes::duplicate_name, "two inputs of the graph are called " + in_quotes(input.name()));
  for (const NodeProto& node : graph.node()) list.nodes.push_back(&node);
  for (const auto& output : graph.output()) list.outputs.push_back(output.name());
  list.given = std::move(weights);
  list.given.merge(inputs);
  return list;
}

support::Status add_initializers(const Model& model, const NodeList& list, const GraphProto& graph,
                                 GraphValues& values) {
  std::unordered_set<std::string> read(list.outputs.begin(), list.outputs.end());
  for (const NodeProto* node : list.nodes) each_read(*node, [&](const std::string& name) { read.insert(name); });
  Diagnostics wrong;
  const auto constant_of = [](auto data) {
    if constexpr (std::is_same_v<std::decay_t<decltype(data)>, Strings>)
      return relax::strings(std::move(data.texts), std::move(data.shape));
    else
      return relax::constant(std::move(data));
  };
  const auto add = [&](const std::string& name, auto data) {
    if (!data.ok()) {
      for (const Diagnostic& d : data.diagnostics())
        if (wrong.size() < most_diagnostics) wrong.push_back(d);
      return;
    }
    values[name] = {.tensor = constant_of(std::move(*data)), .given_by = "the initializer"};
  };
  const auto what = [](const std::string& name) { return "the initializer " + in_quotes(name); };
  std::vector<const TensorProto*> tensors;
  for (const auto& tensor : graph.initializer())
    if (read.count(tensor.name()) && holds_strings(tensor))
      add(tensor.name(), read_strings(model, tensor, what(tensor.name()), model.place()));
    else if (read.count(tensor.name()))
      tensors.push_back(&tensor);
  // All their bytes are read, and copied where they do not lie aligned, which takes long where there are many.
  std::vector<Result<ir::TensorData>> data(tensors.size(), ir::TensorData());
  const bool is_much =
      model.file.view.size() > many_bytes || std::any_of(tensors.begin(), tensors.end(), [](const TensorProto* tensor) {
        return tensor->data_location() == TensorProto::EXTERNAL;
      });
  support::parallel_for(
      tensors.size(), is_much ? static_cast<int>(std::thread::hardware_concurrency()) : 1,
      [&](size_t i) { data[i] = read_tensor(model, *tensors[i], what(tensors[i]->name()), model.place()); });
  for (size_t i = 0; i < tensors.size(); ++i) add(tensors[i]->name(), std::move(data[i]));
  for (const auto& tensor : graph.sparse_initializer())
    if (const std::string& name = tensor.values().name(); read.count(name))
      add(name, read_sparse_tensor(model, tensor, what(name), model.place()));
  if (!wrong.empty()) return wrong;
  return support::success();
}

}  // namespace lathe::onnx
