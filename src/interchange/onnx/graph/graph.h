// Conversion of a model's graph, and of the functions it calls, into a relax function.
#pragma once

#include "interchange/onnx/graph_value.h"
#include "interchange/onnx/import.h"
#include "interchange/onnx/read/model.h"

namespace lathe::onnx {

// Values of the graph by their names.
using GraphValues = std::unordered_map<std::string, GraphValue>;
// Is told of each node of the model's own graph, in order, when it has been converted, and of `opset`, that of its
// domain. The values are those of the model's inputs and initializers, and what the nodes so far give.
using SeeNode = std::function<void(const schema::NodeProto& node, int64_t opset, const GraphValues& values)>;

support::Result<ir::IRModule> import_graph(const Model& model, const ImportOptions& options, const SeeNode& see = {});

}  // namespace lathe::onnx
