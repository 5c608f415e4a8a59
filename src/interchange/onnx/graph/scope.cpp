#include "interchange/onnx/graph/scope.h"

#include "interchange/onnx/graph/check_node.h"
#include "onnx_schema.pb.h"

namespace lathe::onnx {

using schema::GraphProto;
using schema::NodeProto;

std::unordered_map<std::string, int64_t> declared_ranks(const GraphProto& graph) {
  std::unordered_map<std::string, int64_t> ranks;
  for (const auto* values : {&graph.value_info(), &graph.output()})
    for (const auto& value : *values)
      if (const auto& tensor = value.type().tensor_type(); value.type().has_tensor_type() && tensor.has_shape())
        ranks[value.name()] = tensor.shape().dim_size();
  // What these operators take has as many dimensions as what they give. A list in order has users after producers.
  static const std::unordered_set<std::string_view> keeps_rank{
      "Abs",        "Cast", "CastLike", "Ceil",    "Exp",  "Floor",   "Identity", "Log", "Neg",
      "Reciprocal", "Relu", "Round",    "Sigmoid", "Sign", "Softmax", "Sqrt",     "Tanh"};
  for (int i = graph.node_size(); i-- > 0;) {
    const NodeProto& node = graph.node(i);
    if (domain_of(node.domain()) != "" || !keeps_rank.count(node.op_type()) || node.input_size() < 1 ||
        node.output_size() < 1)
      continue;
    if (const auto it = ranks.find(node.output(0)); it != ranks.end())
      ranks.emplace(node.input(0), int64_t{it->second});
  }
  return ranks;
}

GraphValue* Scope::find(const std::string& name) {
  const auto it = values.find(name);
  if (it != values.end()) return &it->second;
  const GraphValue* outer = around && !absent.count(name) ? around->find(name) : nullptr;
  return outer ? &(values[name] = *outer) : nullptr;
}

Scope inside(Scope& around) {
  Scope scope;
  scope.opsets = around.opsets;
  scope.given = around.given;
  scope.around = &around;
  scope.absent = around.absent;
  scope.same_sizes = around.same_sizes;
  return scope;
}

void name_long_extents(relax::BlockBuilder& builder, Scope& scope, GraphValue& value) {
  constexpr int64_t most_terms = 48;
  if (!value.tensor || !is_tensor(value)) return;
  relax::Shape shape = *relax::as_tensor(value.tensor)->shape;
  bool is_long = false;
  for (ir::Expr& extent : shape) {
    if (is_small(extent, most_terms)) continue;
    is_long = true;
    auto known = std::find_if(scope.extents.begin(), scope.extents.end(),
                              [&](const auto& each) { return ir::structural_equal(each.first, extent); });
    if (known == scope.extents.end())
      known = scope.extents.emplace(scope.extents.end(), extent, ir::size_var("extent"));
    extent = known->second;
  }
  if (is_long)
    value.tensor =
        builder.match_cast(value.tensor, relax::tensor_info(std::move(shape), relax::as_tensor(value.tensor)->dtype));
}

std::vector<int> nodes_again(Scope& scope, const std::vector<std::string>& names, const std::string& result) {
  // What depends on the values, in order; then, from the result back, what it needs of that, or has not met yet.
  std::unordered_set<std::string> reached(names.begin(), names.end()), needed{result};
  const std::unordered_set<std::string> given = reached;
  for (const int index : *scope.order) {
    const NodeProto& node = *(*scope.nodes)[static_cast<size_t>(index)];
    bool reads = false;
    each_read(node, [&](const std::string& name) { reads = reads || reached.count(name); });
    if (reads) reached.insert(node.output().begin(), node.output().end());
  }
  std::vector<int> chosen;
  for (size_t k = scope.order->size(); k-- > 0;) {
    const NodeProto& node = *(*scope.nodes)[static_cast<size_t>((*scope.order)[k])];
    const bool again = std::any_of(node.output().begin(), node.output().end(), [&](const std::string& name) {
      return needed.count(name) && !given.count(name) && (reached.count(name) || !scope.find(name));
    });
    if (!again) continue;
    chosen.push_back((*scope.order)[k]);
    each_read(node, [&](const std::string& name) { needed.insert(name); });
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace lathe::onnx
