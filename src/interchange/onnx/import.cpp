#include "interchange/onnx/import.h"

#include "interchange/onnx/graph.h"

namespace lathe::onnx {

using support::Result;

namespace {

Result<ir::IRModule> import_bytes(Bytes file, std::string name, std::string folder, const ImportOptions& options) {
  return support::catch_diagnostics([&]() -> Result<ir::IRModule> {
    const Model model = TRY(read_model(std::move(file), std::move(name), std::move(folder)));
    return import_graph(model, options);
  });
}

}  // namespace

Result<ir::IRModule> import_onnx(const std::string& path, const ImportOptions& options) {
  Bytes file = TRY(map_file(path));
  const std::filesystem::path where(path);
  const std::string folder = where.has_parent_path() ? where.parent_path().string() : ".";
  return import_bytes(std::move(file), where.filename().string(), folder, options);
}

Result<ir::IRModule> import_onnx(const ModelBytes& bytes, const ImportOptions& options) {
  return import_bytes({*bytes.content, bytes.content}, bytes.name, bytes.folder, options);
}

}  // namespace lathe::onnx
