#include "graph/constant_weights.h"

#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

// Elements of a tensor of known size.
std::optional<int64_t> elements_of(const Expr& e) {
  const auto* info = as_tensor(e);
  const auto shape = info && info->shape ? constant_shape(*info->shape) : std::nullopt;
  if (!shape) return std::nullopt;
  int64_t count = 1;
  for (const int64_t extent : *shape) count *= extent;
  return count;
}

bool keeps_size(const Expr& from, const Expr& to) {
  const auto before = elements_of(from), after = elements_of(to);
  return before && after && *before == *after && *after > 0;
}

}  // namespace

ConstantWeights::ConstantWeights(const Function& function) {
  for (const Binding& binding : all_bindings(function)) {
    const auto* bound = binding.as<VarBinding>();
    const auto* call = bound ? bound->value.as<Call>() : nullptr;
    const Operator* op = call ? callee_operator(*call) : nullptr;
    if (!op) continue;
    const bool is_same = op->is_view || op == &ops::permute_dims;
    const bool is_product = op == &ops::multiply && has(call->args[1]);
    if ((is_same || is_product) && has(call->args[0]) && keeps_size(call->args[0], bound->var))
      vars_.insert(bound->var.get());
  }
}

std::unordered_set<const ir::Node*> scaled_kernels(const Function& function) {
  std::unordered_map<const ir::Node*, int> as_kernel;
  std::unordered_set<const ir::Node*> products;
  for (const Binding& binding : all_bindings(function)) {
    const auto* bound = binding.as<VarBinding>();
    if (!bound) continue;
    if (const auto* product = as_call_of(bound->value, "multiply"))
      if (product->args[0].is<Constant>() && product->args[1].is<VarNode>() && keeps_size(product->args[0], bound->var))
        products.insert(bound->var.get());
    const auto* conv = as_call_of(bound->value, "nn.conv");
    if (conv && static_cast<const ops::ConvAttributes*>(conv->attributes.get())->groups == 1)
      ++as_kernel[conv->args[1].get()];
  }
  if (products.empty()) return products;
  const std::unordered_map<const ir::Node*, int> uses = count_uses(function);
  std::erase_if(products, [&](const ir::Node* var) {
    const auto kernels = as_kernel.find(var);
    const auto all = uses.find(var);
    return kernels == as_kernel.end() || all == uses.end() || all->second != kernels->second;
  });
  return products;
}

}  // namespace lathe::graph
