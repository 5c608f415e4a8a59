#include "interchange/onnx/nodes/inline_functions.h"

#include "interchange/onnx/codes.h"
#include "interchange/onnx/order.h"
#include "interchange/onnx/read/names.h"
#include "onnx_schema.pb.h"

namespace lathe::onnx {

namespace {

using schema::AttributeProto;
using schema::FunctionProto;
using schema::GraphProto;
using schema::NodeProto;
using Nodes = google::protobuf::RepeatedPtrField<NodeProto>;

// What the nodes of one list see: names that stand for others, and the attributes of the call around them.
struct CallScope {
  std::map<std::string, std::string> names;  // "" for an input that the call leaves out
  std::string prefix;                        // of names that are not in `names`
  std::map<std::string, AttributeProto> given;

  std::string value(const std::string& name) const {
    if (name.empty()) return name;
    const auto it = names.find(name);
    return it == names.end() ? prefix + name : it->second;
  }
};

class Inliner {
 public:
  explicit Inliner(const Model& model) : model_(model), functions_(*model.proto) {}

  Model run() {
    auto made = std::make_shared<schema::ModelProto>(*model_.proto);
    made->clear_functions();
    made->mutable_graph()->clear_node();
    opsets_ = read_opsets(model_).value_or_throw();
    nodes(model_.proto->graph().node(), {}, *made->mutable_graph()->mutable_node());
    made->clear_opset_import();
    for (const auto& [domain, version] : opsets_) {
      auto& import = *made->add_opset_import();
      import.set_domain(domain);
      import.set_version(version);
    }
    Model result = model_;
    result.proto = std::move(made);
    return result;
  }

 private:
  void nodes(const Nodes& from, const CallScope& scope, Nodes& into) {
    for (const NodeProto& node : from) {
      NodeProto made = node;
      for (std::string& name : *made.mutable_input()) name = scope.value(name);
      for (std::string& name : *made.mutable_output()) name = scope.value(name);
      if (!made.name().empty()) made.set_name(scope.prefix + made.name());
      attributes(node, scope, made);
      if (const FunctionProto* function = functions_.find(node))
        call(*function, made, into);
      else
        *into.Add() = std::move(made);
    }
  }

  void attributes(const NodeProto& node, const CallScope& scope, NodeProto& made) {
    made.clear_attribute();
    for (const AttributeProto& attribute : node.attribute()) {
      AttributeProto value = attribute;
      if (!attribute.ref_attr_name().empty()) {
        const auto given = scope.given.find(attribute.ref_attr_name());
        if (given == scope.given.end()) continue;
        value = given->second;
        value.set_name(attribute.name());
      }
      // A graph that the call gave is in the names of the call's own scope already.
      if (value.has_g() && attribute.has_g()) *value.mutable_g() = graph(attribute.g(), scope);
      *made.add_attribute() = std::move(value);
    }
  }

  GraphProto graph(const GraphProto& from, const CallScope& scope) {
    GraphProto made = from;
    made.clear_node();
    for (auto& input : *made.mutable_input()) input.set_name(scope.value(input.name()));
    for (auto& output : *made.mutable_output()) output.set_name(scope.value(output.name()));
    for (auto& info : *made.mutable_value_info()) info.set_name(scope.value(info.name()));
    for (auto& tensor : *made.mutable_initializer()) tensor.set_name(scope.value(tensor.name()));
    for (auto& tensor : *made.mutable_sparse_initializer())
      tensor.mutable_values()->set_name(scope.value(tensor.values().name()));
    nodes(from.node(), scope, *made.mutable_node());
    return made;
  }

  void call(const FunctionProto& function, const NodeProto& node, Nodes& into) {
    const Opsets own = opsets_of(function, opsets_);
    for (const auto& [domain, version] : own)
      if (const auto it = opsets_.find(domain); it != opsets_.end() && it->second != version)
        throw support::DiagnosticError(support::Diagnostic{
            .code = codes::unsupported_opset,
            .place = model_.place(),
            .message = "the function " + in_quotes(function.name()) + " imports opset " + std::to_string(version) +
                       " where the model imports " + std::to_string(it->second) +
                       ": its nodes cannot stand in the model's graph"});
    opsets_.insert(own.begin(), own.end());
    CallScope scope;
    scope.prefix = function.name() + "_" + std::to_string(++calls_) + "/";
    for (int i = 0; i < function.output_size() && i < node.output_size(); ++i)
      if (!node.output(i).empty()) scope.names[function.output(i)] = node.output(i);
    for (int i = 0; i < function.input_size(); ++i)
      scope.names[function.input(i)] = i < node.input_size() ? node.input(i) : "";
    for (const AttributeProto& attribute : function.attribute_proto()) scope.given[attribute.name()] = attribute;
    for (const AttributeProto& attribute : node.attribute()) scope.given[attribute.name()] = attribute;
    nodes(function.node(), scope, into);
    pass_through(function, node, into);
  }

  // An output that is an input of the function as it is.
  static void pass_through(const FunctionProto& function, const NodeProto& node, Nodes& into) {
    for (int i = 0; i < function.output_size() && i < node.output_size(); ++i)
      for (int k = 0; k < function.input_size() && k < node.input_size(); ++k) {
        if (function.output(i) != function.input(k) || node.output(i).empty()) continue;
        NodeProto& identity = *into.Add();
        identity.set_op_type("Identity");
        identity.add_input(node.input(k));
        identity.add_output(node.output(i));
      }
  }

  const Model& model_;
  LocalFunctions functions_;
  Opsets opsets_;
  int64_t calls_ = 0;
};

}  // namespace

support::Result<Model> inline_functions(const Model& model) {
  return support::catch_diagnostics([&]() -> support::Result<Model> {
    if (model.proto->functions().empty()) return model;
    const Opsets opsets = TRY(read_opsets(model));
    const LocalFunctions functions(*model.proto);
    TRY(check_operators(model, functions, opsets));
    TRY(check_expansion(model, functions));
    return Inliner(model).run();
  });
}

}  // namespace lathe::onnx
