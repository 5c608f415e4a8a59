// ONNX Runtime as an oracle, in a Python process of its own: nothing of it is linked.
#pragma once

#include "driver/verify/verify_model.h"

namespace lathe::tool {

// Its outputs for a trial's inputs, in the order of the trial's outputs; a diagnostic says why there are none.
support::Result<std::vector<ir::TensorData>> run_onnxruntime(const std::string& python, const std::string& model,
                                                             const driver::VerifyTrial& trial);

}  // namespace lathe::tool
