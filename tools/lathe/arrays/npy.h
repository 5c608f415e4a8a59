// NumPy's files: .npy in both directions (NumPy Enhancement Proposal 1, versions 1 to 3), .npz written.
#pragma once

#include "ir/tensor_data.h"
#include "support/result.h"

namespace lathe::tool {

// The array in a .npy file, in C order whatever the file's.
support::Result<ir::TensorData> read_npy(const std::string& path);
// The same of a file's bytes; `path` is what messages name.
support::Result<ir::TensorData> read_npy_bytes(std::string_view bytes, const std::string& path);
// The bytes of a .npy file. A dtype that NumPy has no name for (bfloat16, float8) is written as raw bytes ("V2").
std::string npy_bytes(const ir::TensorDataNode& array);
support::Status write_npz(const std::string& path, const std::vector<std::pair<std::string, ir::TensorData>>& arrays);
support::Status write_npy(const std::string& path, const ir::TensorDataNode& array);

}  // namespace lathe::tool
