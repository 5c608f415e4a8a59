#include "interchange/onnx/read/model.h"

#include <google/protobuf/io/coded_stream.h>

#include "interchange/onnx/codes.h"
#include "interchange/onnx/read/names.h"
#include "interchange/onnx/read/wire.h"
#include "onnx_schema.pb.h"

namespace lathe::onnx {

using support::Diagnostic;
using support::Result;

Result<Model> read_model(Bytes file, std::string name, std::string folder) {
  Model model{std::move(file), printable(name), std::move(folder), nullptr};
  const std::string outline = TRY(read_outline(model.file.view, model.name));
  auto proto = std::make_shared<schema::ModelProto>();
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(outline.data()),
                                                static_cast<int>(outline.size()));
  stream.SetRecursionLimit(128);
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  if (!proto->ParseFromCodedStream(&stream))
    return Diagnostic{.code = codes::damaged,
                      .place = model.place(),
                      .message = "the file is damaged or is not an ONNX model: its fields do not have ONNX's types"};
  if (!proto->has_graph())
    return Diagnostic{.code = codes::wrong_graph,
                      .place = model.place(),
                      .message = "the file holds no graph, so it is no ONNX model"};
  model.proto = std::move(proto);
  return model;
}

Result<Model> read_model(const std::string& path) {
  Bytes file = TRY(map_file(path));
  const std::filesystem::path where(path);
  return read_model(std::move(file), where.filename().string(),
                    where.has_parent_path() ? where.parent_path().string() : ".");
}

}  // namespace lathe::onnx
