// libFuzzer: bytes as an ONNX model.
#include "interchange/onnx/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lathe::onnx::ModelBytes bytes;
  bytes.content = std::make_shared<const std::string>(reinterpret_cast<const char*>(data), size);
  const auto module = lathe::onnx::import_onnx(bytes);
  return module.ok() || !module.diagnostics().empty() ? 0 : -1;
}
