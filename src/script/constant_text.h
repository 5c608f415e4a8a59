// Constant tensors in scripts: small ones by their values, large ones by the hash of their bytes.
#pragma once

#include "script/document.h"
#include "script/options.h"

namespace lathe::script {

// "[[1, 2], [3, 4]], \"int64\"" or "\"sha…\" reference": the arguments that stand for the tensor. A large one goes into
// `options.constants` when there is a place for it.
std::vector<std::string> constant_arguments(const ir::TensorDataNode& data, const PrintOptions& options);

// The name under which a constant's data is kept: 32 hexadecimal digits.
std::string content_name(const ir::TensorDataNode& data);

}  // namespace lathe::script
