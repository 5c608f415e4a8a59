#include <cstring>

#include "graph/padding/zeros.h"
#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "ops/attributes.h"
#include "ops/operators.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(mark_zero_borders_of_any_value, "graph_test", "a border of ones is taken for one of zeros");

namespace {

// The values of all kernels that were looked at: every element of float32 is finite.
class FiniteKernels {
 public:
  bool operator()(const Expr& kernel) {
    const auto* constant = kernel ? kernel.as<Constant>() : nullptr;
    if (!constant || constant->data->dtype != ir::DType::float32()) return false;
    const auto [known, fresh] = known_.try_emplace(constant->data.get(), false);
    if (fresh) known->second = is_finite(constant->data->view());
    return known->second;
  }

 private:
  // The exponent of an infinity or NaN is all ones: adding to it carries into the sign.
  static bool is_finite(std::string_view bytes) {
    uint32_t carried = 0;
    for (size_t i = 0; i + sizeof(uint32_t) <= bytes.size(); i += sizeof(uint32_t)) {
      uint32_t bits = 0;
      std::memcpy(&bits, bytes.data() + i, sizeof bits);
      carried |= (bits & 0x7fffffffU) + 0x00800000U;
    }
    return (carried & 0x80000000U) == 0;
  }

  std::unordered_map<const ir::Node*, bool> known_;
};

// Zeros around the spatial axes of a channels-last image that `pad` made, begins and then ends; empty where it made
// something else.
std::vector<int64_t> zeros_around(const Call* pad, size_t rank) {
  if (!pad || !(pads_zeros(*pad) || support::flip(mark_zero_borders_of_any_value))) return {};
  std::vector<int64_t> border;
  for (const size_t side : {1, 2}) {
    const auto* info = pad->args[side]->struct_info.as<ShapeStructInfo>();
    if (!info || !info->values || info->values->size() != rank) return {};
    for (size_t d = 1; d + 1 < rank; ++d)
      border.push_back(std::max<int64_t>(ir::as_int((*info->values)[d]).value_or(0), 0));
  }
  return border;
}

// A convolution of one group, or depthwise with a window that is not written out: nobody asks about a few products.
bool goes_by_many_products(const Call& conv, const ops::ConvAttributes& attrs) {
  constexpr int64_t written_out = 36;
  if (attrs.groups == 1) return true;
  const auto* kernel = conv.args[1].as<Constant>();
  const bool is_depthwise = attrs.channels == attrs.groups;  // channels are told of a packed kernel
  return kernel && is_depthwise && kernel->data->elements() > written_out * attrs.groups;
}

}  // namespace

support::Result<ir::IRModule> mark_zero_borders(ir::IRModule module, const ir::PassContext&) {
  FiniteKernels finite;
  return rewrite_functions(std::move(module), [&](Emitter& emitter, const Var&, const Expr& value) -> Result<Expr> {
    const auto* conv = as_call_of(value, "nn.conv");
    if (!conv) return Expr();
    const auto& attrs = *static_cast<const ops::ConvAttributes*>(conv->attributes.get());
    const auto* x = as_tensor(conv->args[0]);
    if (!x || x->ndim < 3 || !goes_by_many_products(*conv, attrs) || attrs.data_layout != "NHWC" ||
        attrs.auto_pad != "NOTSET" || !attrs.zero_border.empty())
      return Expr();
    const size_t counts = 2 * (static_cast<size_t>(x->ndim) - 2);
    std::vector<int64_t> border = attrs.padding;
    border.resize(counts);
    const std::vector<int64_t> around =
        zeros_around(as_call_of(emitter.value_of(conv->args[0]), "nn.pad"), static_cast<size_t>(x->ndim));
    for (size_t i = 0; i < around.size(); ++i) border[i] += around[i];
    if (std::all_of(border.begin(), border.end(), [](int64_t n) { return n == 0; }) || !finite(conv->args[1]))
      return Expr();
    return make_call(ops::conv, conv->args,
                     ir::with(attrs, [&](ops::ConvAttributes& copy) { copy.zero_border = border; }));
  });
}

}  // namespace lathe::graph
