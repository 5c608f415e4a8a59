// libFuzzer: bytes as an ONNX model, imported, and taken apart into nodes and written again.
#include "interchange/onnx/import.h"
#include "interchange/onnx/nodes/import_nodes.h"
#include "interchange/onnx/nodes/write_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lathe::onnx::ModelBytes bytes;
  bytes.content = std::make_shared<const std::string>(reinterpret_cast<const char*>(data), size);
  const auto module = lathe::onnx::import_onnx(bytes);
  if (const auto nodes = lathe::onnx::import_nodes(bytes); nodes.ok()) {
    const auto written = lathe::onnx::write_onnx(*nodes);
    if (!written.ok() && written.diagnostics().empty()) return -1;
  }
  return module.ok() || !module.diagnostics().empty() ? 0 : -1;
}
