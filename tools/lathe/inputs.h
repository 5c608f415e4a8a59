// The inputs of a model that the command runs: from files, or made up.
#pragma once

#include "abi/lathe.h"
#include "driver/report/reproducer.h"
#include "driver/value.h"
#include "ir/tensor_data.h"
#include "relax/dim_sizes.h"
#include "support/std.h"

namespace lathe::tool {

// "x: float32 [3, n]".
std::string signature(const LatheValueInfo& info);

// In the order of the model's signature; `given` is the options "name=file.npy" (arrays/values.h: other files). What is
// not given is an error.
std::vector<driver::Value> read_inputs(const std::vector<std::string>& given, LatheModel* model);
// The same of its states, as tensors.
std::vector<ir::TensorData> read_states(const std::vector<std::string>& given, LatheModel* model);
// Tensors; what is not given is a random one, of the likeliest sizes that are told of its symbols.
std::vector<ir::TensorData> read_or_make_inputs(const std::vector<std::string>& given, LatheModel* model,
                                                const relax::DimSizesByName& told = {});

// --input or another option of its form again, for a reproducer: the files go along.
void append_inputs(const std::vector<std::string>& given, driver::Reproducer& reproducer,
                   const std::string& option = "--input");

}  // namespace lathe::tool
