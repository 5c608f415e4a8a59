// Nodes of an ONNX model as calls of one relax operator: the form in which a graph is changed and written as ONNX
// again.
//
//   y = R.onnx_node(x, w, b, op="Conv", opset=17, body="…", name="conv1", outputs=["y"], sinfo_args=[…])
//
// What such a call computes is said by the node alone; `sinfo_args` tell what was known of its outputs on import.
#pragma once

#include "relax/attributes.h"

namespace lathe_onnx {
class NodeProto;
}

namespace lathe::onnx {

namespace schema = ::lathe_onnx;

struct NodeCallAttributes : relax::AttributesNode {
  static constexpr std::string_view kind_name = "OnnxNodeAttributes";
  std::string op, domain;             // the domain "" is ONNX's own
  int64_t opset = 0;                  // of the domain
  std::string body;                   // the node's attributes: a NodeProto in base 16
  std::vector<std::string> captures;  // names by which graphs inside the node know the last arguments
  int64_t draw = 0;                   // tells nodes that draw random numbers apart
  // Names that the model gives, outside equality; an output that the node leaves out is "".
  std::string name;
  std::vector<std::string> outputs;
  std::vector<std::string> given_outputs() const;  // without those that are left out
  static constexpr auto fields() {
    using Role = ir::Role;
    return std::tuple{ir::field("op", &NodeCallAttributes::op),
                      ir::field("domain", &NodeCallAttributes::domain),
                      ir::field("opset", &NodeCallAttributes::opset),
                      ir::field("body", &NodeCallAttributes::body),
                      ir::field("captures", &NodeCallAttributes::captures),
                      ir::field("draw", &NodeCallAttributes::draw),
                      ir::field("name", &NodeCallAttributes::name, Role::ignore),
                      ir::field("outputs", &NodeCallAttributes::outputs, Role::ignore)};
  }
};

// Its value is the output, or a tuple of those that are there. Two rows: what depends on its arguments alone, and what
// draws random numbers, which is neither computed beforehand nor computed once for two.
extern const relax::Operator node_operator, random_node_operator;
// Those of ops.def and these.
const relax::OperatorTable& operators_with_nodes();

// The attributes of such a call, or null.
const NodeCallAttributes* as_node_call(const relax::Expr& e);
inline bool is_node(const NodeCallAttributes* node, std::string_view op) {
  return node && node->domain.empty() && node->op == op;
}

// The body as text, and back; a text that is none gives a diagnostic.
std::string body_text(const schema::NodeProto& body);
support::Result<schema::NodeProto> body_of(const NodeCallAttributes& node);
// An attribute that is an integer or a number, or what stands for it.
support::Result<double> number_of(const NodeCallAttributes& node, std::string_view name, double otherwise);

}  // namespace lathe::onnx
