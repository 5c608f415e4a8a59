#include "interchange/onnx/read/external_files.h"

#include "interchange/onnx/read/model.h"
#include "onnx_schema.pb.h"

namespace lathe::onnx {
namespace {

class Locations {
 public:
  void add(const schema::GraphProto& graph) {
    for (const schema::TensorProto& tensor : graph.initializer()) add(tensor);
    for (const schema::SparseTensorProto& sparse : graph.sparse_initializer()) add(sparse);
    for (const schema::NodeProto& node : graph.node()) add(node);
  }
  void add(const schema::NodeProto& node) {
    for (const schema::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_t()) add(attribute.t());
      if (attribute.has_g()) add(attribute.g());
      if (attribute.has_sparse_tensor()) add(attribute.sparse_tensor());
      for (const schema::TensorProto& tensor : attribute.tensors()) add(tensor);
      for (const schema::GraphProto& graph : attribute.graphs()) add(graph);
      for (const schema::SparseTensorProto& sparse : attribute.sparse_tensors()) add(sparse);
    }
  }
  const std::set<std::string>& found() const { return found_; }

 private:
  void add(const schema::SparseTensorProto& sparse) {
    add(sparse.values());
    add(sparse.indices());
  }
  void add(const schema::TensorProto& tensor) {
    if (tensor.data_location() != schema::TensorProto::EXTERNAL) return;
    for (const auto& entry : tensor.external_data())
      if (entry.key() == "location") found_.insert(entry.value());
  }

  std::set<std::string> found_;
};

}  // namespace

std::vector<std::string> external_files(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const std::string beside = folder.empty() ? "." : folder.string();
  const support::Result<Bytes> file = map_file(path);
  if (!file.ok()) return {};
  const support::Result<Model> model = read_model(*file, path, beside);
  if (!model.ok()) return {};
  Locations locations;
  locations.add(model->proto->graph());
  for (const schema::FunctionProto& function : model->proto->functions())
    for (const schema::NodeProto& node : function.node()) locations.add(node);
  std::vector<std::string> readable;
  for (const std::string& location : locations.found())
    if (map_external(beside, location, {}).ok()) readable.push_back(location);
  return readable;
}

}  // namespace lathe::onnx
