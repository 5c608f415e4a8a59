// The inputs of a model that the command runs: from files, or made up.
#pragma once

#include "abi/lathe.h"
#include "driver/report/reproducer.h"
#include "ir/tensor_data.h"
#include "support/std.h"

namespace lathe::tool {

// "x: float32 [3, n]".
std::string signature(const LatheValueInfo& info);

// In the order of the model's signature; `given` is the options "name=file.npy". What is not given is an error, or a
// random tensor where `made_up` is set (which takes a fixed shape).
std::vector<ir::TensorData> read_inputs(const std::vector<std::string>& given, LatheModel* model, bool made_up = false);

// --input again, for a reproducer: the files go along.
void append_inputs(const std::vector<std::string>& given, driver::Reproducer& reproducer);

}  // namespace lathe::tool
