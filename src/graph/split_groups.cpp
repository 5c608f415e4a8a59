#include "graph/groups.h"
#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "ops/attributes.h"
#include "ops/operators.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(split_groups_order, "graph_test", "the groups of a convolution get one another's weights");

namespace {

// More convolutions than this are more calls than they are worth.
constexpr int64_t most_groups = 16;

struct Groups {
  int64_t count = 1, inputs = 0, outputs = 0;  // channels of one group
};

// The groups of a convolution that are large enough to be convolutions of their own; a reason where they are not.
std::optional<Groups> large_groups(const Call& conv, int64_t lanes, std::string_view& why) {
  const auto& attrs = *static_cast<const ops::ConvAttributes*>(conv.attributes.get());
  if (attrs.groups < 2) return std::nullopt;
  const auto* weights = conv.args[1].as<Constant>();
  const auto* x = as_tensor(conv.args[0]);
  if (!weights || !x || !x->shape || x->dtype != ir::DType::float32() || attrs.data_layout != "NCHW" ||
      attrs.kernel_layout != "OIHW" || !attrs.out_layout.empty()) {
    why = "its groups are no constant weights of float32 with the channels first";
    return std::nullopt;
  }
  if (has_group_loops(conv, lanes)) {
    why = "its groups have a loop of their own";
    return std::nullopt;
  }
  const Groups groups{attrs.groups, weights->data->shape[1], weights->data->shape[0] / attrs.groups};
  if (attrs.groups > most_groups || groups.inputs < 2 || 2 * groups.outputs <= lanes) {
    why = "its groups are too many, or too small to fill vectors";
    return std::nullopt;
  }
  return groups;
}

// The weights of one group: a piece of the same bytes.
Expr weights_of(const Constant& all, const Groups& groups, int64_t group) {
  if (support::flip(split_groups_order)) group = groups.count - 1 - group;
  std::vector<int64_t> shape = all.data->shape;
  shape[0] = groups.outputs;
  const int64_t bytes = all.data->byte_size() / groups.count;
  return relax::constant(
      ir::tensor_data(all.data->dtype, std::move(shape), all.data->bytes + group * bytes, all.data->owner));
}

Result<Expr> split(Emitter& emitter, const Call& conv, const Groups& groups) {
  const auto& attrs = *static_cast<const ops::ConvAttributes*>(conv.attributes.get());
  const auto alone = ir::with(attrs, [](ops::ConvAttributes& copy) { copy.groups = 1; });
  const auto channels = [](int64_t channel) { return make<ShapeExpr>(std::vector<ir::Expr>{ir::int64(channel)}); };
  std::vector<Expr> parts;
  for (int64_t g = 0; g < groups.count; ++g) {
    const Expr x = TRY(emitter.call(
        ops::strided_slice, {conv.args[0], channels(g * groups.inputs), channels((g + 1) * groups.inputs)},
        ir::with(ops::StridedSliceAttributes{}, [](ops::StridedSliceAttributes& copy) { copy.axes = {1}; }), "group"));
    parts.push_back(
        TRY(emitter.call(ops::conv, {x, weights_of(*conv.args[1].as<Constant>(), groups, g)}, alone, "group_conv")));
  }
  return make_call(ops::concat, std::move(parts), make<ops::AxisAttributes>(1));
}

}  // namespace

bool has_group_loops(const Call& conv, int64_t lanes) {
  const auto& attrs = *static_cast<const ops::ConvAttributes*>(conv.attributes.get());
  const auto* weights = conv.args[1].as<Constant>();
  if (!weights || attrs.kernel_layout != "OIHW" || attrs.groups < 2) return false;
  const int64_t inputs = weights->data->shape[1], outputs = weights->data->shape[0] / attrs.groups;
  if (inputs < 2 || 2 * outputs < lanes) return false;
  constexpr int64_t near = 32 << 10;  // bytes of a nearest cache
  return outputs <= 4 * lanes || (outputs <= 16 * lanes && weights->data->byte_size() / attrs.groups <= near);
}

Result<IRModule> split_groups(IRModule module, const target::Target& target, const PassContext& context) {
  return rewrite_functions(std::move(module), [&](Emitter& emitter, const Var& var, const Expr& value) -> Result<Expr> {
    const Call* conv = as_call_of(value, "nn.conv");
    if (!conv) return Expr();
    std::string_view why;
    const auto groups = large_groups(*conv, target.lanes(32), why);
    if (groups) return split(emitter, *conv, *groups);
    if (!why.empty()) context.remark("split_groups", var->name, std::string(why));
    return Expr();
  });
}

}  // namespace lathe::graph
