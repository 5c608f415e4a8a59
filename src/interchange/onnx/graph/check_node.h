// What is asked of a node's operands before it is converted, and of its results. Private to this folder.
#pragma once

#include "interchange/onnx/node.h"

namespace lathe::onnx {

// "a sequence", for what is no tensor.
std::string kind_of(const GraphValue& value);
bool is_tensor(const GraphValue& value);

// Refuses more or fewer inputs and outputs than the operator has, and what it does not take.
void check_counts(const OperatorRow& row, NodeImport& import);

// Refuses what no memory holds, and shapes that have grown past use.
void check_shape(const NodeImport& import, const GraphValue& value);

}  // namespace lathe::onnx
