// Conversion of a model's graph, and of the functions it calls, into a relax function.
#pragma once

#include "interchange/onnx/import.h"
#include "interchange/onnx/read/model.h"

namespace lathe::onnx {

support::Result<ir::IRModule> import_graph(const Model& model, const ImportOptions& options);

}  // namespace lathe::onnx
