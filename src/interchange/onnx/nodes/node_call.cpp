#include "interchange/onnx/nodes/node_call.h"

#include "interchange/onnx/codes.h"
#include "onnx_schema.pb.h"
#include "ops/operators.h"

namespace lathe::onnx {

namespace {

using relax::InferContext;
using relax::StructInfo;
using support::Result;

constexpr std::string_view digits = "0123456789abcdef";

Result<StructInfo> infer_node(const InferContext& c) {
  const size_t there = c.attrs<NodeCallAttributes>().given_outputs().size();
  if (there != c.struct_info_args.size() || there == 0)
    return relax::wrong(relax::codes::wrong_arguments, "onnx_node says in sinfo_args what each output is: it names " +
                                                           std::to_string(there) + " outputs and has " +
                                                           std::to_string(c.struct_info_args.size()) + " of them");
  if (there == 1) return c.struct_info_args[0];
  return StructInfo(
      ir::make<relax::TupleStructInfo>(std::vector<StructInfo>(c.struct_info_args.begin(), c.struct_info_args.end())));
}

// A node means what the import of a model with it gives (`node_evaluator` in driver/rewrite/node_passes.h): tensor
// programs are functions of their own, which a single expression cannot hold.
Result<relax::Expr> refuse_to_expand(relax::BlockBuilder&, const relax::Call& call) {
  const auto& node = static_cast<const NodeCallAttributes&>(*call.attributes);
  return relax::wrong(codes::unsupported, "a node of ONNX ('" + node.op + "') stands where a program is expected");
}

}  // namespace

const relax::Operator node_operator{.name = "onnx_node",
                                    .inputs = {{"values", relax::Input::variadic}},
                                    .attributes = relax::attributes_of<NodeCallAttributes>(),
                                    .infer = infer_node,
                                    .meaning = relax::Composite(refuse_to_expand),
                                    .reference = "the operator of the onnx package's reference"};

const relax::Operator random_node_operator{.name = "onnx_random_node",
                                           .inputs = {{"values", relax::Input::variadic}},
                                           .attributes = relax::attributes_of<NodeCallAttributes>(),
                                           .infer = infer_node,
                                           .meaning = relax::RuntimeKernel{"onnx_random_node"},
                                           .reference = "random numbers"};

const relax::OperatorTable& operators_with_nodes() {
  static const relax::OperatorTable table = [] {
    relax::OperatorTable rows = ops::default_operators();
    rows.add(node_operator);
    rows.add(random_node_operator);
    return rows;
  }();
  return table;
}

std::vector<std::string> NodeCallAttributes::given_outputs() const {
  std::vector<std::string> given = outputs;
  std::erase(given, "");
  return given;
}

const NodeCallAttributes* as_node_call(const relax::Expr& e) {
  const auto* call = e ? e.as<relax::Call>() : nullptr;
  const relax::Operator* op = call ? relax::callee_operator(*call) : nullptr;
  const bool is_one = op && (op->name == node_operator.name || op->name == random_node_operator.name);
  return is_one ? static_cast<const NodeCallAttributes*>(call->attributes.get()) : nullptr;
}

std::string body_text(const schema::NodeProto& body) {
  std::string text;
  for (const char byte : body.SerializeAsString()) {
    text += digits[static_cast<uint8_t>(byte) >> 4];
    text += digits[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

Result<schema::NodeProto> body_of(const NodeCallAttributes& node) {
  std::string bytes;
  bool is_text = node.body.size() % 2 == 0;
  for (size_t i = 0; is_text && i < node.body.size(); i += 2) {
    const size_t high = digits.find(node.body[i]), low = digits.find(node.body[i + 1]);
    is_text = high != std::string_view::npos && low != std::string_view::npos;
    bytes += static_cast<char>(high << 4 | low);
  }
  schema::NodeProto body;
  if (!is_text || !body.ParseFromString(bytes))
    return relax::wrong(codes::damaged, "the body of onnx_node '" + node.name + "' is not the text of a node");
  return body;
}

Result<double> number_of(const NodeCallAttributes& node, std::string_view name, double otherwise) {
  const schema::NodeProto body = TRY(body_of(node));
  for (const auto& attribute : body.attribute())
    if (attribute.name() == name)
      return attribute.has_f() ? static_cast<double>(attribute.f()) : static_cast<double>(attribute.i());
  return otherwise;
}

}  // namespace lathe::onnx
