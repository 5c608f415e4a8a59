#include "tir/scalars.h"

#include "ir/visit.h"

namespace lathe::tir {

std::vector<Var> scalar_params(const PrimFunc& function) {
  std::vector<Var> result;
  for (const Var& param : function.params)
    if (!function.buffer_of(param)) result.push_back(param);
  return result;
}

Function specialize(const Function& function, const ScalarValues& values) {
  const std::vector<Var> scalars = scalar_params(*function);
  support::require(values.size() == scalars.size(), "a function has as many values as scalars");
  VarMap numbers;
  for (size_t i = 0; i < scalars.size(); ++i)
    if (values[i]) numbers[scalars[i]] = constant(scalars[i]->dtype, *values[i]);
  const Function rest = with(*function, [&](PrimFunc& copy) {
    std::erase_if(copy.params, [&](const Var& param) { return numbers.contains(param); });
  });
  return substitute(rest, numbers);
}

}  // namespace lathe::tir
