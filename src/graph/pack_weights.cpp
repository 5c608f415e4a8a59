#include "graph/constant_weights.h"
#include "graph/groups.h"
#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "ops/attributes.h"
#include "ops/operators.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(pack_weights_swaps_padding, "graph_test", "a packed convolution is padded at the other ends");

namespace {

// Columns a panel: two vectors, which is what a register tile holds beside its rows; one, or half of one, where there
// are few columns. 0: packing would mostly store zeros.
int64_t panel_width(int64_t columns, ir::DType dtype, const target::Target& target) {
  const int64_t lanes = target.lanes(dtype.bits);
  if (columns == 3 * lanes) return columns;
  if (columns > lanes) return 2 * lanes;
  if (!target.fills_vector(columns, dtype.bits)) return 0;
  return 2 * columns == lanes ? columns : lanes;
}

std::optional<int64_t> extent(const Expr& e, size_t axis) {
  const auto* info = as_tensor(e);
  return info && info->shape && axis < info->shape->size() ? ir::as_int((*info->shape)[axis]) : std::nullopt;
}

bool packable(const ConstantWeights& weights, const Expr& weight) {
  if (!weights.has(weight) || as_tensor(weight)->dtype != ir::DType::float32()) return false;
  const auto* constant = weight.as<Constant>();
  return !constant || constant->data->elements() > 0;
}

// What a function packs once, whoever uses it: an unrolled loop applies one weight at every step.
class Packed {
 public:
  Result<Expr> of(Emitter& emitter, const Operator& op, const Expr& weight, int64_t width) {
    const auto* constant = weight.as<Constant>();
    const ir::Node* content = constant ? static_cast<const ir::Node*>(constant->data.get()) : weight.get();
    Expr& known = known_[{content, &op, width}];
    if (!known) known = TRY(emitter.call(op, {weight}, make<ops::PackAttributes>(width), "packed"));
    return known;
  }

 private:
  std::map<std::tuple<const ir::Node*, const Operator*, int64_t>, Expr> known_;
};

Result<Expr> pack(Emitter& emitter, const target::Target& target, const ConstantWeights& weights, Packed& packed_before,
                  const Expr& value) {
  if (const auto* conv = as_call_of(value, "nn.conv")) {
    const auto& attrs = *static_cast<const ops::ConvAttributes*>(conv->attributes.get());
    if (!packable(weights, conv->args[1]) || attrs.kernel_layout != "OIHW") return Expr();
    const int64_t channels = extent(conv->args[1], 0).value_or(0);
    // A depthwise convolution with the channels last takes one panel of all channels: its vectors run along them.
    const bool depthwise =
        attrs.groups == channels && channels > 1 && extent(conv->args[1], 1) == 1 && attrs.data_layout == "NHWC";
    const bool last = (attrs.out_layout.empty() ? attrs.data_layout : attrs.out_layout) == "NHWC";
    const bool grouped = last && has_group_loops(*conv, target.lanes(32));
    if (attrs.groups != 1 && !depthwise && !grouped) return Expr();
    int64_t width = depthwise ? channels
                    : grouped ? channels / attrs.groups
                              : panel_width(channels, ir::DType::float32(), target);
    // Few channels of an image whose channels are last: what one of them multiplies lies side by side.
    if (width == 0 && channels > 0 && attrs.data_layout == "NHWC") width = 1;
    if (width == 0) return Expr();
    const Expr packed = TRY(packed_before.of(emitter, ops::pack_kernel, conv->args[1], width));
    return make_call(ops::conv, {conv->args[0], packed}, ir::with(attrs, [&](ops::ConvAttributes& copy) {
                       copy.kernel_layout = fmt::format("OHWI{}o", width);
                       copy.channels = channels;
                       const auto middle = copy.padding.begin() + static_cast<ptrdiff_t>(copy.padding.size() / 2);
                       if (support::flip(pack_weights_swaps_padding))
                         std::rotate(copy.padding.begin(), middle, copy.padding.end());
                     }));
  }
  if (const auto* product = as_call_of(value, "matmul")) {
    const auto& attrs = *static_cast<const ops::MatmulAttributes*>(product->attributes.get());
    const auto* b = as_tensor(product->args[1]);
    if (!packable(weights, product->args[1]) || attrs.b_layout != "KN" || !b || b->ndim < 2) return Expr();
    const int64_t columns = extent(product->args[1], static_cast<size_t>(b->ndim) - 1).value_or(0);
    const int64_t width = panel_width(columns, ir::DType::float32(), target);
    if (width == 0) return Expr();
    const Expr packed = TRY(packed_before.of(emitter, ops::pack_matrix, product->args[1], width));
    return make_call(ops::matmul, {product->args[0], packed}, ir::with(attrs, [&](ops::MatmulAttributes& copy) {
                       copy.b_layout = fmt::format("NK{}n", width);
                       copy.columns = columns;
                     }));
  }
  return Expr();
}

}  // namespace

support::Result<ir::IRModule> pack_weights(ir::IRModule module, const target::Target& target, const ir::PassContext&) {
  TRY(change_functions(module, [&](const std::string&, const Function& function) {
    const ConstantWeights weights(function);
    Packed packed;
    const auto rewrite = [&](Emitter& emitter, const Var&, const Expr& value) {
      return pack(emitter, target, weights, packed, value);
    };
    return rewrite_bindings(function, rewrite);
  }));
  return module;
}

}  // namespace lathe::graph
