// The parameters of a tensor function that are numbers.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir {

std::vector<Var> scalar_params(const PrimFunc& function);

// By position among `scalar_params`; nothing where a scalar stays a parameter.
using ScalarValues = std::vector<std::optional<int64_t>>;

// The function with numbers in the place of the scalars that have one. `values` has as many as there are scalars.
Function specialize(const Function& function, const ScalarValues& values);

}  // namespace lathe::tir
