// A model file that has been read: the parsed outline, where its payloads lie, and what it says of itself.
#pragma once

#include "interchange/onnx/read/file.h"
#include "ir/tensor_data.h"

namespace lathe_onnx {  // generated from ONNX's schema (onnx_schema.pb.h)
class AttributeProto;
class FunctionProto;
class GraphProto;
class ModelProto;
class NodeProto;
class SparseTensorProto;
class TensorProto;
class TypeProto;
class ValueInfoProto;
}  // namespace lathe_onnx

namespace lathe::onnx {

namespace schema = ::lathe_onnx;

struct Model {
  Bytes file;
  std::string name;    // the file's, without its folder: what diagnostics call it
  std::string folder;  // of external data; empty: none
  std::shared_ptr<const schema::ModelProto> proto;

  support::Place place() const { return support::ModelNode{name, "", ""}; }
};

support::Result<Model> read_model(Bytes file, std::string name, std::string folder);
// The model in a file; its external data lies in the file's folder.
support::Result<Model> read_model(const std::string& path);

// The element type of that number in TensorProto.DataType, or a diagnostic: those of the specification that Lathe does
// not compile are named, others are said to be unknown. `what` begins the sentence: "the input 'x'".
support::Result<ir::DType> element_type(int64_t number, const std::string& what, const support::Place& place);

// The type's name for people: "string", or as everywhere else.
std::string element_name(ir::DType dtype);

// Its number in TensorProto.DataType; 0 where it has none.
int element_number(ir::DType dtype);

// The number of bytes of such a tensor, or nothing when no machine could hold it.
std::optional<int64_t> checked_bytes(std::span<const int64_t> dims, ir::DType dtype);

// The tensor, pointing into the mapped file where alignment allows. `what` begins the sentences about it.
support::Result<ir::TensorData> read_tensor(const Model& model, const schema::TensorProto& tensor,
                                            const std::string& what, const support::Place& place);

// A tensor of strings, in row-major order.
struct Strings {
  std::vector<int64_t> shape;
  std::vector<std::string> texts;
};
bool holds_strings(const schema::TensorProto& tensor);
support::Result<Strings> read_strings(const Model& model, const schema::TensorProto& tensor, const std::string& what,
                                      const support::Place& place);

// The dense tensor of a sparse one.
support::Result<ir::TensorData> read_sparse_tensor(const Model& model, const schema::SparseTensorProto& tensor,
                                                   const std::string& what, const support::Place& place);

}  // namespace lathe::onnx
