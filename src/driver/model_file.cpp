#include "driver/model_file.h"

#include "driver/codes.h"
#include "driver/script_file.h"
#include "interchange/onnx/import.h"

namespace lathe::driver {

using support::Result;

bool is_script(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  return extension == ".relax" || extension == ".tir" || extension == ".py";
}

Result<ir::IRModule> read_model(const std::string& path, const ReadOptions& options) {
  return support::catch_diagnostics([&]() -> Result<ir::IRModule> {
    if (!is_script(path)) return onnx::import_onnx(path, {.dims = options.dims});
    if (!options.dims.empty())
      return support::Diagnostic{
          .code = codes::script_dims,
          .message = fmt::format("the dimension '{}' cannot be fixed in a script: {} says its sizes itself",
                                 options.dims.begin()->first, path)};
    return read_script(path);
  });
}

Result<ir::IRModule> read_model_bytes(std::string bytes, const std::string& name, const ReadOptions& options) {
  return support::catch_diagnostics([&]() -> Result<ir::IRModule> {
    return onnx::import_onnx({.content = std::make_shared<const std::string>(std::move(bytes)), .name = name},
                             {.dims = options.dims});
  });
}

}  // namespace lathe::driver
