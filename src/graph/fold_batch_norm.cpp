#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "ops/attributes.h"
#include "ops/build.h"
#include "ops/operators.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(fold_batch_norm_forgets_epsilon, "graph_test driver_test", "another epsilon");

namespace {

bool is_constant(const Expr& e) { return e && e.is<Constant>(); }

// Whether broadcasting to that rank (batch, channels, …) gives each channel one element of `bias`: [C, 1, …], [1, C, 1,
// …].
bool is_per_channel(const Constant& bias, int64_t channels, int64_t rank) {
  const auto& shape = bias.data->shape;
  const auto size = static_cast<int64_t>(shape.size());
  if (size > rank || bias.data->elements() != channels) return false;
  for (int64_t i = 0; i < size; ++i)
    if (shape[static_cast<size_t>(i)] != (i - size + rank == 1 ? channels : 1)) return false;
  return channels == 1 || size >= rank - 1;
}

class BatchNormFolder {
 public:
  explicit BatchNormFolder(const Function& function) : function_(function) {}

  Result<Expr> operator()(Emitter& emitter, const Var&, const Expr& value) {
    const auto* call = as_call_of(value, "nn.batch_norm_inference");
    if (!call) return Expr();
    for (size_t i = 1; i < call->args.size(); ++i)
      if (!is_constant(call->args[i])) return Expr();
    const auto& attrs = *static_cast<const ops::BatchNormAttributes*>(call->attributes.get());
    const auto* info = as_tensor(call->args[0]);
    if (!info || info->ndim < 1) return Expr();
    const int64_t axis = attrs.axis < 0 ? attrs.axis + info->ndim : attrs.axis;

    // scale = gamma / sqrt(variance + epsilon), shift = beta - mean * scale
    const double epsilon = support::flip(fold_batch_norm_forgets_epsilon) ? 0.5 : attrs.epsilon;
    const ir::DType dtype = as_tensor(call->args[4])->dtype;
    Expr deviation = TRY(emitter.call(ops::add, {call->args[4], ops::build::scalar(dtype, epsilon)}));
    deviation = TRY(emitter.call(ops::sqrt, {deviation}));
    const Expr scale = TRY(emitter.call(ops::divide, {call->args[1], deviation}));
    const Expr moved = TRY(emitter.call(ops::multiply, {call->args[3], scale}));
    const Expr shift = TRY(emitter.call(ops::subtract, {call->args[2], moved}));

    if (const auto folded = TRY(into_convolution(emitter, call->args[0], axis, scale, shift, info->ndim)))
      return *folded;
    const Expr scaled =
        TRY(emitter.call(ops::multiply, {call->args[0], TRY(per_channel(emitter, scale, info->ndim - axis))}));
    return make_call(ops::add, {scaled, TRY(per_channel(emitter, shift, info->ndim - axis))});
  }

 private:
  // [C] as [C, 1, …] of that rank.
  static Result<Expr> per_channel(Emitter& emitter, const Expr& vector, int64_t rank) {
    std::vector<ir::Expr> shape(static_cast<size_t>(rank), ir::int64(1));
    shape[0] = (*as_tensor(vector)->shape)[0];
    return emitter.call(ops::reshape, {vector, make<ShapeExpr>(std::move(shape))});
  }

  bool used_once(const Expr& e) {
    if (!uses_) uses_ = count_uses(function_);
    const auto it = uses_->find(e.get());
    return it != uses_->end() && it->second == 1;
  }

  // conv(x, w) [+ b], all used once, with constant w and b: the convolution with scaled weights, plus one bias.
  Result<std::optional<Expr>> into_convolution(Emitter& emitter, const Expr& input, int64_t axis, const Expr& scale,
                                               Expr shift, int64_t rank) {
    const std::optional<Expr> none;
    if (axis != 1 || !used_once(input)) return none;
    Expr convolved = input;
    Expr bias;
    if (const auto* sum = as_call_of(emitter.value_of(input), "add")) {
      if (!is_constant(sum->args[1]) || !used_once(sum->args[0])) return none;
      convolved = sum->args[0];
      bias = sum->args[1];
    }
    const auto* conv = as_call_of(emitter.value_of(convolved), "nn.conv");
    if (!conv || !is_constant(conv->args[1])) return none;
    const auto& attrs = *static_cast<const ops::ConvAttributes*>(conv->attributes.get());
    if (attrs.data_layout != "NCHW" || attrs.kernel_layout != "OIHW") return none;
    const auto channels = ir::as_int((*as_tensor(scale)->shape)[0]);
    if (!channels) return none;
    shift = TRY(per_channel(emitter, shift, rank - 1));
    if (bias) {
      if (!is_per_channel(*bias.as<Constant>(), *channels, rank)) return none;
      const Expr flat =
          TRY(emitter.call(ops::reshape, {bias, make<ShapeExpr>(std::vector<ir::Expr>{ir::int64(*channels)})}));
      const Expr scaled = TRY(emitter.call(ops::multiply, {flat, scale}));
      shift = TRY(emitter.call(ops::add, {TRY(per_channel(emitter, scaled, rank - 1)), shift}));
    }
    const Expr factor = TRY(per_channel(emitter, scale, rank));  // the kernel's first axis is the output channel
    const Expr kernel = TRY(emitter.call(ops::multiply, {conv->args[1], factor}));
    const Expr result = TRY(emitter.call(ops::conv, {conv->args[0], kernel}, conv->attributes, "conv"));
    return std::optional(TRY(make_call(ops::add, {result, shift})));
  }

  const Function& function_;
  std::optional<std::unordered_map<const ir::Node*, int>> uses_;  // counted where there is something to fold
};

}  // namespace

support::Result<ir::IRModule> fold_batch_norm(ir::IRModule module, const ir::PassContext&) {
  TRY(change_functions(module, [](const std::string&, const Function& function) {
    return rewrite_bindings(function, BatchNormFolder(function));
  }));
  return module;
}

}  // namespace lathe::graph
