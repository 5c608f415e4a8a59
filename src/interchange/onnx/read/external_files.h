// Which files beside a model it takes data from.
#pragma once

#include "support/std.h"

namespace lathe::onnx {

// Relative to the model's folder, each once, and only those that an import would read (file.h says what is refused).
// Nothing where the model cannot be read.
std::vector<std::string> external_files(const std::string& path);

}  // namespace lathe::onnx
