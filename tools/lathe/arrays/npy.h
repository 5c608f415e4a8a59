// NumPy's files: .npy (NumPy Enhancement Proposal 1, versions 1 to 3) and .npz, in both directions.
#pragma once

#include "ir/tensor_data.h"
#include "support/result.h"

namespace lathe::tool {

// What a .npy file holds, of any dtype but objects and records.
struct NpyArray {
  std::string descr;  // without the byte order: "f4", "V2", "U5" (four bytes a character), "S3"
  std::vector<int64_t> shape;
  int64_t item = 1;   // bytes of an element
  std::string bytes;  // in C order, whatever the file's
};

support::Result<NpyArray> parse_npy(std::string_view bytes, const std::string& path);  // `path`: what messages name
support::Result<NpyArray> read_npy_array(const std::string& path);
std::string npy_bytes(const NpyArray& array);

// A tensor of the array. NumPy has no names for some dtypes (bfloat16, float8, 2 and 4 bits): elements of `wanted` come
// as raw bytes ("V2"), those below a byte one a byte.
bool numpy_names(ir::DType dtype);
support::Result<ir::TensorData> tensor_of(NpyArray array, const std::string& path,
                                          std::optional<ir::DType> wanted = std::nullopt);
NpyArray npy_array(const ir::TensorDataNode& tensor);
// Strings are UTF-8; where one is not, they are written as bytes. Zeros at the end of a string are lost to both.
support::Result<std::vector<std::string>> strings_of(const NpyArray& array, const std::string& path);
NpyArray npy_array(const std::vector<std::string>& strings, std::vector<int64_t> shape);

support::Result<ir::TensorData> read_npy(const std::string& path);
support::Status write_npy(const std::string& path, const NpyArray& array);

// The arrays of an archive by their names, in its order.
using NamedArrays = std::vector<std::pair<std::string, NpyArray>>;
support::Result<NamedArrays> read_npz(const std::string& path);
support::Status write_npz(const std::string& path, const NamedArrays& arrays);

}  // namespace lathe::tool
