#include "interchange/onnx/import.h"

#include "interchange/onnx/graph/graph.h"

namespace lathe::onnx {

using support::Result;

Result<ir::IRModule> import_onnx(const std::string& path, const ImportOptions& options) {
  return support::catch_diagnostics([&]() -> Result<ir::IRModule> {
    const Model model = TRY(read_model(path));
    return import_graph(model, options);
  });
}

Result<ir::IRModule> import_onnx(const ModelBytes& bytes, const ImportOptions& options) {
  return support::catch_diagnostics([&]() -> Result<ir::IRModule> {
    const Model model = TRY(read_model({*bytes.content, bytes.content}, bytes.name, bytes.folder));
    return import_graph(model, options);
  });
}

}  // namespace lathe::onnx
