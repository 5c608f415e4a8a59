// Import of a model node by node: a function whose bindings are the model's nodes as they are (node_call.h).
#pragma once

#include "interchange/onnx/import.h"

namespace lathe::onnx {

// The module's function "main" has the parameters and output names of `import_onnx`, and says in its attributes what
// the model imports. The ordinary import goes along and tells types: a value that it knows, computed from shapes and
// other constants, is a constant here, and a node that gives what it takes is left out. Functions of the model's own
// are inlined.
support::Result<ir::IRModule> import_nodes(const std::string& path, const ImportOptions& options = {});
support::Result<ir::IRModule> import_nodes(const ModelBytes& bytes, const ImportOptions& options = {});

// Names of attributes of "main": {domain: version}, the model's IR version, its graph's name, how many nodes that has.
inline constexpr const char opsets_attribute[] = "onnx_opsets";
inline constexpr const char ir_version_attribute[] = "onnx_ir_version";
inline constexpr const char graph_name_attribute[] = "onnx_graph_name";
inline constexpr const char nodes_attribute[] = "onnx_nodes";

}  // namespace lathe::onnx
