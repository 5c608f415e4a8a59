// The names that a graph gives and its nodes read, before any node is converted. Private to this folder.
#pragma once

#include "interchange/onnx/graph/graph.h"
#include "interchange/onnx/order.h"

namespace lathe::onnx {

// A diagnostic about the model as a whole.
support::Diagnostic refuse(const Model& model, support::Code code, std::string message);

// Refuses initializers without a name, and names that two initializers or two inputs have.
support::Result<NodeList> list_nodes(const Model& model, const schema::GraphProto& graph);

// Only initializers that are read become constants.
support::Status add_initializers(const Model& model, const NodeList& list, const schema::GraphProto& graph,
                                 GraphValues& values);

}  // namespace lathe::onnx
