// Reading a model of any form that Lathe imports: ONNX, or the text of either IR.
#pragma once

#include "ir/function.h"
#include "relax/dim_sizes.h"
#include "support/result.h"

namespace lathe::driver {

struct ReadOptions {
  relax::DimSizesByName dims;  // symbolic dimensions fixed to a value, or what is told of their sizes, by name
};

// The model in the file, by its extension: .onnx; .relax, .tir and .py are scripts. Another extension is read as ONNX.
support::Result<ir::IRModule> read_model(const std::string& path, const ReadOptions& options = {});

// A serialised ONNX model; diagnostics call it `name`. It may have no external data.
support::Result<ir::IRModule> read_model_bytes(std::string bytes, const std::string& name,
                                               const ReadOptions& options = {});

// Whether the path names a script rather than a model.
bool is_script(const std::string& path);

}  // namespace lathe::driver
