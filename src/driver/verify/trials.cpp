#include "driver/verify/trials.h"

#include "driver/codes.h"
#include "driver/verify/tensors.h"

namespace lathe::driver {

namespace {
constexpr int64_t trial_sizes[] = {1, 3, 17};
}

std::vector<std::string> symbols_of(const Signature& signature) {
  std::vector<std::string> names;
  for (const relax::Var& input : signature.inputs) {
    const auto* info = input->struct_info.as<relax::TensorStructInfo>();
    if (!info || !info->shape) continue;
    for (const ir::Expr& dim : *info->shape)
      if (const auto* symbol = dim.as<ir::VarNode>())
        if (std::find(names.begin(), names.end(), symbol->name) == names.end()) names.push_back(symbol->name);
  }
  return names;
}

size_t trials_of(const std::vector<std::string>& symbols) { return symbols.empty() ? 1 : std::size(trial_sizes); }

Dims trial_dims(const std::vector<std::string>& symbols, size_t trial) {
  Dims dims;
  for (size_t s = 0; s < symbols.size(); ++s) dims[symbols[s]] = trial_sizes[(trial + s) % std::size(trial_sizes)];
  return dims;
}

support::Result<std::vector<ir::TensorData>> random_inputs(const Signature& signature, const Dims& dims,
                                                           uint64_t seed) {
  std::vector<ir::TensorData> inputs;
  for (const relax::Var& input : signature.inputs) {
    const auto* info = input->struct_info.as<relax::TensorStructInfo>();
    if (!info || !info->shape)
      return support::Diagnostic{
          .code = codes::verify_unknown_shape,
          .message = "the input '" + input->name + "' has no known shape to make random values of"};
    std::vector<int64_t> shape;
    for (const ir::Expr& dim : *info->shape) {
      const auto* symbol = dim.as<ir::VarNode>();
      const auto known = ir::as_int(dim);
      const auto tried = symbol ? dims.find(symbol->name) : dims.end();
      shape.push_back(known ? *known : tried != dims.end() ? tried->second : 3);
    }
    inputs.push_back(random_tensor(info->dtype, std::move(shape), seed + inputs.size()));
  }
  return inputs;
}

}  // namespace lathe::driver
