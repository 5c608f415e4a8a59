// Nodes of small constants are evaluated on import, because shapes may be computed from them.
#pragma once

#include "interchange/onnx/node.h"

namespace lathe::onnx {

// Evaluates the node by the interpreter of graphs when all its inputs are constants of few elements, and gives its
// results to `import`; false where it is converted as it is.
bool fold_constants(const OperatorRow& row, NodeImport& import, NodeAttributes& attributes);

}  // namespace lathe::onnx
