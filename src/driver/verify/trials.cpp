#include "driver/verify/trials.h"

#include "driver/codes.h"
#include "driver/verify/tensors.h"
#include "relax/dim_sizes.h"

namespace lathe::driver {

namespace {

constexpr int64_t sizes_that_hurt[] = {1, 3, 17};

// The symbolic dimensions of the inputs, by name.
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

std::vector<int64_t> tried(const relax::DimSizes& told) {
  std::vector<int64_t> sizes;
  const auto add = [&](int64_t size) {
    if (told.allows(size) && std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
  };
  for (const int64_t size : sizes_that_hurt) add(size);
  for (const int64_t size : told.likely) add(size);
  if (sizes.empty()) add(told.least);
  return sizes;
}

}  // namespace

std::vector<Dims> trials_of(const ir::IRModule& module) {
  const std::vector<std::string> symbols = symbols_of(signature_of(module));
  relax::DimSizesByName told;
  if (auto sizes = relax::told_sizes(*module.find_as<relax::FunctionNode>("main")); sizes.ok())
    told = *std::move(sizes);
  std::vector<std::vector<int64_t>> sizes;
  size_t count = 1;
  Dims likely;
  for (const std::string& symbol : symbols) {
    sizes.push_back(tried(told[symbol]));
    count = std::max(count, sizes.back().size());
    if (!told[symbol].likely.empty()) likely[symbol] = told[symbol].likely[0];
  }
  std::vector<Dims> trials(count);
  for (size_t t = 0; t < count; ++t)
    for (size_t s = 0; s < symbols.size(); ++s) trials[t][symbols[s]] = sizes[s][(t + s) % sizes[s].size()];
  if (likely.size() > 1) {  // all at once, for the kernels of several symbols
    likely.insert(trials[0].begin(), trials[0].end());
    trials.push_back(std::move(likely));
  }
  return trials;
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
