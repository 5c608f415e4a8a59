// A model without functions of its own: each call of one becomes the function's nodes.
#pragma once

#include "interchange/onnx/read/model.h"

namespace lathe::onnx {

// Names of values inside a call begin with the function's name and the call's number. Refused: a function that imports
// another version of a domain than the model does. The payloads of tensors stay where they are in the file.
support::Result<Model> inline_functions(const Model& model);

}  // namespace lathe::onnx
