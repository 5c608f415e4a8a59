#include "interchange/onnx/read/external_files.h"

#include <unistd.h>

#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

namespace fs = std::filesystem;

void lie_outside(schema::TensorProto& tensor, const std::string& location) {
  tensor.set_data_type(schema::TensorProto::FLOAT);
  tensor.set_data_location(schema::TensorProto::EXTERNAL);
  auto& entry = *tensor.add_external_data();
  entry.set_key("location");
  entry.set_value(location);
}

TEST(external_files, are_those_of_tensors_anywhere_that_an_import_would_read) {
  const fs::path root = fs::temp_directory_path() / ("external_files_test_" + std::to_string(::getpid()));
  fs::create_directories(root / "model" / "sub");
  for (const char* name : {"outside.bin", "model/a.bin", "model/sub/b.bin", "model/c.bin", "model/unused.bin"})
    std::ofstream(root / name) << "bytes";
  schema::ModelProto model;
  auto& graph = *model.mutable_graph();
  lie_outside(*graph.add_initializer(), "a.bin");
  lie_outside(*graph.add_initializer(), "a.bin");
  lie_outside(*graph.add_initializer(), "../outside.bin");
  lie_outside(*graph.add_initializer(), "missing.bin");
  auto& inner = *graph.add_node()->add_attribute()->mutable_g();
  lie_outside(*inner.add_node()->add_attribute()->mutable_t(), "sub/b.bin");
  lie_outside(*model.add_functions()->add_node()->add_attribute()->add_tensors(), "c.bin");
  const std::string path = (root / "model" / "m.onnx").string();
  std::ofstream(path, std::ios::binary) << model.SerializeAsString();
  EXPECT_EQ(external_files(path), (std::vector<std::string>{"a.bin", "c.bin", "sub/b.bin"}));
  std::ofstream(path, std::ios::binary) << "no model";
  EXPECT_TRUE(external_files(path).empty());
  fs::remove_all(root);
}

}  // namespace
}  // namespace lathe::onnx
