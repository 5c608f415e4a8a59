#include "graph/padding/zeros.h"
#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "ops/attributes.h"
#include "ops/operators.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(merge_padding_swaps_ends, "graph_test", "a tensor is padded at the end by what belongs at the beginning");

namespace {

// The pads of [batch, channels, spatial…] as windows take them, begins and then ends; nothing where they are no zeros
// around spatial dimensions.
std::optional<std::vector<int64_t>> spatial_padding(const Call& pad) {
  if (!pads_zeros(pad)) return std::nullopt;
  std::vector<int64_t> padding;
  for (const size_t side : {1, 2}) {
    const auto* info = pad.args[side]->struct_info.as<ShapeStructInfo>();
    if (!info || !info->values) return std::nullopt;
    for (size_t d = 0; d < info->values->size(); ++d) {
      const auto known = ir::as_int((*info->values)[d]);
      if (!known || *known < 0 || (d < 2 && *known > 0)) return std::nullopt;
      if (d >= 2) padding.push_back(*known);
    }
  }
  if (support::flip(merge_padding_swaps_ends))
    std::rotate(padding.begin(), padding.begin() + static_cast<ptrdiff_t>(padding.size() / 2), padding.end());
  return padding;
}

// Attributes with windows that start so much earlier and end so much later.
template <class T>
AttributesRef padded(const T& attrs, const std::vector<int64_t>& padding) {
  return ir::with(attrs, [&](T& copy) {
    if (copy.auto_pad != "NOTSET" || copy.padding.empty()) copy.padding.assign(padding.size(), 0);
    copy.auto_pad = "NOTSET";
    for (size_t d = 0; d < padding.size(); ++d) copy.padding[d] += padding[d];
  });
}

// Windows that SAME places depend on the extent, which is the padded one's.
template <class T>
bool places_by_extent(const T& attrs) {
  return attrs.auto_pad != "NOTSET" && attrs.auto_pad != "VALID";
}

// The attributes of a convolution or average that reads what was padded, after they take the padding over; null where
// they cannot.
AttributesRef with_padding(const Call& call, const std::vector<int64_t>& padding) {
  const std::string_view name = callee_operator(call)->name;
  if (name == "nn.conv") {
    const auto& attrs = *static_cast<const ops::ConvAttributes*>(call.attributes.get());
    return attrs.data_layout == "NCHW" && !places_by_extent(attrs) ? padded(attrs, padding) : AttributesRef();
  }
  if (name != "nn.avg_pool") return {};
  // The zeros count as elements, so all of the padding must; a window over the end counts what a pad there adds.
  const auto& attrs = *static_cast<const ops::PoolAttributes*>(call.attributes.get());
  if (attrs.layout != "NCHW" || places_by_extent(attrs) || attrs.ceil_mode) return {};
  const bool had_none = attrs.auto_pad == "VALID" ||
                        std::all_of(attrs.padding.begin(), attrs.padding.end(), [](int64_t p) { return p == 0; });
  if (!had_none && !attrs.count_include_pad) return {};
  return padded(*ir::with(attrs, [](ops::PoolAttributes& copy) { copy.count_include_pad = true; }), padding);
}

}  // namespace

support::Result<ir::IRModule> merge_padding(ir::IRModule module, const ir::PassContext&) {
  return rewrite_functions(std::move(module), [](Emitter& emitter, const Var&, const Expr& value) -> Result<Expr> {
    const auto* call = value.as<Call>();
    const Operator* op = call ? callee_operator(*call) : nullptr;
    if (!op || (op->name != "nn.conv" && op->name != "nn.avg_pool")) return Expr();
    const auto* pad = call->args.empty() ? nullptr : as_call_of(emitter.value_of(call->args[0]), "nn.pad");
    const auto padding = pad ? spatial_padding(*pad) : std::nullopt;
    AttributesRef attributes = padding ? with_padding(*call, *padding) : AttributesRef();
    if (!attributes) return Expr();
    std::vector<Expr> args = call->args;
    args[0] = pad->args[0];
    const Expr merged = TRY(make_call(*op, std::move(args), std::move(attributes)));
    return ir::structural_equal(merged->struct_info, value->struct_info) ? merged : Expr();
  });
}

}  // namespace lathe::graph
