// Files mapped into memory: a model, and the external data beside it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "support/result.h"

namespace lathe::onnx {

// Bytes that `owner` keeps alive.
struct Bytes {
  std::string_view view;
  std::shared_ptr<const void> owner;
};

support::Result<Bytes> map_file(const std::string& path);

// The file that a tensor's external data names, relative to the model's folder. Refused: absolute paths, "..",
// symbolic links anywhere in the path, files of several hard links, and what is no regular file. `place` is where the
// diagnostic points.
support::Result<Bytes> map_external(const std::string& folder, const std::string& location, support::Place place);

}  // namespace lathe::onnx
