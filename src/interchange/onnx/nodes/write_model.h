// A relax function of nodes (import_nodes.h) as an ONNX model.
#pragma once

#include <map>

#include "ir/function.h"
#include "ir/tensor_data.h"
#include "support/result.h"

namespace lathe::onnx {

struct WriteOptions {
  std::string data_file;                       // beside the model, where large tensors go; empty: all lie in the model
  int64_t least_outside = 1024;                // bytes of a tensor that goes there
  std::map<std::string, std::string> renames;  // values that have other names in what is written
};

struct WrittenModel {
  std::string model;  // a serialised ModelProto
  // What the data file holds: tensors by their offsets, ascending, with zeros between.
  std::vector<std::pair<uint64_t, ir::TensorData>> data;
  int64_t nodes = 0;
};

// The function "main". Values keep the names that the model gave them; each is declared with what is known of its type.
// An output that another node computes than in the model keeps its name all the same. Refused: bindings that are not
// nodes, a value to be renamed that is not there, and a model that would be larger than the 2 GB that one file of ONNX
// can hold.
support::Result<WrittenModel> write_onnx(const ir::IRModule& module, const WriteOptions& options = {});

}  // namespace lathe::onnx
