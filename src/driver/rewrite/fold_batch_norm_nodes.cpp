// BatchNormalization after a convolution, as nodes: the convolution's weights and bias take scale and shift.
#include "driver/rewrite/node_passes.h"
#include "graph/rewrite_bindings.h"
#include "interchange/onnx/node.h"
#include "interchange/onnx/nodes/node_call.h"
#include "support/mutation.h"

namespace lathe::driver {

LATHE_FAULT(fold_batch_norm_nodes_keeps_mean, "driver_test", "the mean is not scaled with the rest of the bias");

namespace {

using graph::Emitter;
using onnx::NodeCallAttributes;
using support::Result;

constexpr int64_t oldest_broadcasting = 7;  // the opset whose arithmetic broadcasts as NumPy's

// Elementwise nodes on constants, which folding then computes.
class ConstantNodes {
 public:
  ConstantNodes(Emitter& emitter, int64_t opset, const std::string& name)
      : emitter_(emitter), opset_(opset), name_(name) {}

  Result<relax::Expr> operator()(const char* op, std::vector<relax::Expr> args, relax::StructInfo info) {
    const std::string name = name_ + "/" + op;
    auto attributes = onnx::attributes_with<NodeCallAttributes>([&](NodeCallAttributes& a) {
      a.op = op;
      a.opset = opset_;
      a.name = name;
      a.outputs = {name};
    });
    relax::Expr call =
        TRY(relax::make_call(onnx::node_operator, std::move(args), std::move(attributes), {}, {std::move(info)}));
    return emitter_.emit(std::move(call), name);
  }

 private:
  Emitter& emitter_;
  int64_t opset_;
  std::string name_;
};

bool is_vector(const relax::Expr& e, int64_t elements, ir::DType dtype) {
  const auto* constant = e ? e.as<relax::Constant>() : nullptr;
  return constant && constant->data->dtype == dtype && constant->data->shape == std::vector<int64_t>{elements};
}

// A convolution whose output channels can be scaled through its weights.
struct Convolution {
  const relax::Call* call;
  const NodeCallAttributes* node;
  ir::TensorData weights;
  int64_t channels;             // of the output
  std::vector<int64_t> scales;  // the shape in which numbers of the channels broadcast over the weights
};

std::optional<Convolution> convolution(const relax::Expr& value) {
  const NodeCallAttributes* node = onnx::as_node_call(value);
  const auto* call = node ? value.as<relax::Call>() : nullptr;
  const bool transposed = onnx::is_node(node, "ConvTranspose");
  if (!transposed && !onnx::is_node(node, "Conv")) return std::nullopt;
  const auto* weights = call->args.size() > 1 && call->args[1] ? call->args[1].as<relax::Constant>() : nullptr;
  if (!weights || weights->data->shape.size() < 3 || !weights->data->dtype.is_floating()) return std::nullopt;
  if (transposed && onnx::number_of(*node, "group", 1).value_or_throw() != 1) return std::nullopt;
  const size_t axis = transposed ? 1 : 0;
  Convolution found{call, node, weights->data, weights->data->shape[axis], {}};
  found.scales.assign(weights->data->shape.size(), 1);
  found.scales[axis] = found.channels;
  const bool has_bias = call->args.size() > 2 && call->args[2];
  if (has_bias && !is_vector(call->args[2], found.channels, weights->data->dtype)) return std::nullopt;
  return found;
}

Result<relax::Expr> folded(Emitter& emitter, const NodeCallAttributes& norm, const relax::Call& call,
                           const Convolution& conv) {
  const ir::DType dtype = conv.weights->dtype;
  const relax::StructInfo vector = call.args[1]->struct_info;
  const uint64_t bits = ir::encode_float(dtype, TRY(onnx::number_of(norm, "epsilon", 1e-5f)));
  const relax::Expr eps = relax::constant(ir::tensor_data(
      dtype, {1}, std::string(reinterpret_cast<const char*>(&bits), static_cast<size_t>(dtype.element_bytes()))));
  const auto rank = static_cast<int64_t>(conv.scales.size());
  const relax::Expr shape = relax::constant(ir::tensor_of<int64_t>(ir::DType::int64(), {rank}, conv.scales));
  ConstantNodes node(emitter, norm.opset, norm.name.empty() ? norm.outputs[0] : norm.name);
  const relax::Expr deviation = TRY(node("Sqrt", {TRY(node("Add", {call.args[4], eps}, vector))}, vector));
  const relax::Expr scale = TRY(node("Div", {call.args[1], deviation}, vector));
  const relax::Expr wide = TRY(node("Reshape", {scale, shape}, relax::tensor_info(conv.scales, dtype)));
  const relax::Expr weights = TRY(node("Mul", {conv.call->args[1], wide}, conv.call->args[1]->struct_info));
  const bool has_bias = conv.call->args.size() > 2 && conv.call->args[2];
  const relax::Expr shift = has_bias ? TRY(node("Sub", {conv.call->args[2], call.args[3]}, vector))
                                     : TRY(node("Neg", {call.args[3]}, vector));
  const relax::Expr factor = support::flip(fold_batch_norm_nodes_keeps_mean) ? call.args[1] : scale;
  const relax::Expr bias = TRY(node("Add", {TRY(node("Mul", {shift, factor}, vector)), call.args[2]}, vector));
  relax::AttributesRef attributes =
      ir::with(*conv.node, [&](NodeCallAttributes& copy) { copy.outputs = {norm.outputs[0]}; });
  return relax::make_call(onnx::node_operator, {conv.call->args[0], weights, bias}, std::move(attributes), {},
                          {call.struct_info_args[0]});
}

}  // namespace

Result<ir::IRModule> fold_batch_norm_nodes(ir::IRModule module, const ir::PassContext&) {
  const auto main = module.find_as<relax::FunctionNode>("main");
  if (!main) return module;
  const auto uses = graph::count_uses(main);
  const auto fold = [&](Emitter& emitter, const relax::Var&, const relax::Expr& value) -> Result<relax::Expr> {
    const NodeCallAttributes* norm = onnx::as_node_call(value);
    if (!onnx::is_node(norm, "BatchNormalization") || norm->opset < oldest_broadcasting) return relax::Expr();
    const auto* call = value.as<relax::Call>();
    if (call->args.size() != 5 || call->struct_info_args.size() != 1)
      return relax::Expr();  // in training it gives more
    const auto conv = convolution(emitter.value_of(call->args[0]));
    const auto used = uses.find(call->args[0].get());
    if (!conv || used == uses.end() || used->second != 1) return relax::Expr();
    for (size_t i = 1; i < 5; ++i)
      if (!is_vector(call->args[i], conv->channels, conv->weights->dtype)) return relax::Expr();
    if (TRY(onnx::number_of(*norm, "training_mode", 0)) != 0) return relax::Expr();
    if (TRY(onnx::number_of(*norm, "spatial", 1)) != 1) return relax::Expr();  // of opset 7
    return folded(emitter, *norm, *call, *conv);
  };
  module.set("main", TRY(graph::rewrite_bindings(main, fold)));
  return module;
}

}  // namespace lathe::driver
