// The passes over graphs of ONNX nodes (interchange/onnx/nodes): what `lathe opt model.onnx -o smaller.onnx` runs.
#pragma once

#include "ir/pass.h"

namespace lathe::driver {

// Rows in their order. Those that graphs of operators have too are the same functions:
//   fold_batch_norm                  into the weights and bias of the convolution before it
//   fold_constants                   what depends on constants only is computed
//   eliminate_common_subexpressions  equal nodes on equal values are one
//   eliminate_dead_code              nodes that no output needs go
//   drop_unused_inputs               inputs that no node reads go; only where it is named
std::vector<ir::PassRow> node_pipeline();
// The names of those that run where none is named.
std::vector<std::string> default_node_passes();

// Computes functions of nodes: they are written as a model, imported again, and given to `inner`. Inputs of few bytes
// are constants of that model, because shapes may be computed from them.
ir::Evaluator node_evaluator(ir::Evaluator inner);

support::Result<ir::IRModule> fold_batch_norm_nodes(ir::IRModule module, const ir::PassContext& context);
support::Result<ir::IRModule> drop_unused_inputs(ir::IRModule module, const ir::PassContext& context);

}  // namespace lathe::driver
