// Import of ONNX models, opsets 7 to 27, and those operators of older ones whose meaning stayed,
// into relax.
//
// The module has the function "main": its parameters are the graph's inputs that no initializer gives a value to, under
// their names; its result is the graph's output, or a tuple of them; the attribute "output_names" lists their names.
// Every binding's origin is the model's node. Named dimensions are one size variable each; unnamed ones are fresh.
// Weights are not copied: constants point into the mapped file, which lives as long as they do.
//
// A model file is hostile input: whatever it holds, the answer is a module or diagnostics, in memory proportional to
// the file's size.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "ir/function.h"
#include "relax/dim_sizes.h"
#include "support/result.h"

namespace lathe::onnx {

struct ImportOptions {
  relax::DimSizesByName dims;  // symbolic dimensions fixed to a value, or what is told of their sizes, by name
};

inline constexpr int64_t oldest_opset = 1, newest_opset = 27;

// The model in the file. External data is looked for in the file's folder and never outside it.
support::Result<ir::IRModule> import_onnx(const std::string& path, const ImportOptions& options = {});

// A serialised ModelProto. `folder` is where its external data lies; empty: it may have none. Diagnostics call it
// `name`.
struct ModelBytes {
  std::shared_ptr<const std::string> content;
  std::string name = "model.onnx";
  std::string folder;
};
support::Result<ir::IRModule> import_onnx(const ModelBytes& bytes, const ImportOptions& options = {});

}  // namespace lathe::onnx
