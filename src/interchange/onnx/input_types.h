// The element types that operators take, as ONNX's own schemas list them.
#pragma once

#include "interchange/onnx/node.h"

namespace lathe::onnx {

// Refuses a node with an input of a type that no release of the operator lists, or with two inputs that share a type
// parameter and have different types. Operators that the schemas do not have are not looked at.
void check_input_types(std::string_view domain, std::string_view op, NodeImport& import);

// What a tensor program makes of strings are their numbers: results that share a type parameter with an input that
// holds strings become strings again.
void keep_strings(std::string_view domain, std::string_view op, NodeImport& import);

}  // namespace lathe::onnx
