#include "interchange/onnx/nodes/import_nodes.h"

#include "interchange/onnx/graph/graph.h"
#include "interchange/onnx/node.h"
#include "interchange/onnx/nodes/inline_functions.h"
#include "interchange/onnx/nodes/node_call.h"
#include "interchange/onnx/order.h"
#include "ir/visit.h"
#include "onnx_schema.pb.h"
#include "relax/block_builder.h"

namespace lathe::onnx {

namespace {

using relax::Expr;
using relax::StructInfo;
using schema::NodeProto;
using support::Result;

bool draws_random_numbers(const NodeProto& node) {
  static const std::set<std::string_view> types{
      "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Dropout"};
  if (types.count(node.op_type())) return node.op_type() != "Dropout" || node.input_size() > 2;
  for (const auto& attribute : node.attribute())
    for (const NodeProto& inner : attribute.g().node())
      if (draws_random_numbers(inner)) return true;
  return false;
}

class Payloads {
 public:
  explicit Payloads(const Model& model) : model_(model) {}

  // The payloads that lie in files become the tensor's own.
  void fill(schema::TensorProto& tensor) const {
    if (!tensor.has_raw_data() && tensor.data_location() != schema::TensorProto::EXTERNAL) return;
    const ir::TensorData data = read_tensor(model_, tensor, "a tensor of a node", model_.place()).value_or_throw();
    tensor.clear_external_data();
    tensor.clear_data_location();
    tensor.set_raw_data(std::string(data->view()));
  }
  void fill(schema::SparseTensorProto& tensor) const {
    fill(*tensor.mutable_values());
    fill(*tensor.mutable_indices());
  }
  void fill(NodeProto& node) const {
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) fill(*attribute.mutable_t());
      if (attribute.has_sparse_tensor()) fill(*attribute.mutable_sparse_tensor());
      for (auto& tensor : *attribute.mutable_tensors()) fill(tensor);
      if (!attribute.has_g()) continue;
      for (auto& tensor : *attribute.mutable_g()->mutable_initializer()) fill(tensor);
      for (auto& tensor : *attribute.mutable_g()->mutable_sparse_initializer()) fill(tensor);
      for (NodeProto& inner : *attribute.mutable_g()->mutable_node()) fill(inner);
    }
  }

 private:
  const Model& model_;
};

class NodeImporter {
 public:
  NodeImporter(const Model& model, const ImportOptions& options, int nodes)
      : model_(model), options_(options), nodes_(nodes), payloads_(model) {}

  Result<ir::IRModule> run() {
    const ir::IRModule whole =
        TRY(import_graph(model_, options_, [this](const NodeProto& node, int64_t opset, const GraphValues& values) {
          see(node, opset, values);
        }));
    const auto main = whole.find_as<relax::FunctionNode>("main");
    read_symbols(main->params);
    relax::BlockBuilder builder;
    ir::Attributes attrs = main->attrs;
    attrs.set(opsets_attribute, opsets());
    attrs.set(ir_version_attribute, static_cast<int64_t>(model_.proto->ir_version()));
    attrs.set(graph_name_attribute, model_.proto->graph().name());
    attrs.set(nodes_attribute, static_cast<int64_t>(nodes_));
    builder.begin_function("main", main->params, std::move(attrs));
    builder.begin_dataflow();
    for (const relax::Var& param : main->params) made_[param->name] = param;
    for (const Seen& node : seen_) emit(builder, node);
    std::vector<Expr> results;
    for (const auto& output : model_.proto->graph().output())
      results.push_back(builder.emit_output(made_value(output.name()), output.name()));
    builder.end_block();
    builder.end_function(results.size() == 1 ? results[0] : Expr(ir::make<relax::Tuple>(results)));
    return builder.finish();
  }

 private:
  // A node, and what is known of the values around it. Symbols are told apart when all parameters are there.
  struct Seen {
    const NodeProto* node;
    int64_t opset;
    std::vector<std::string> captures;
    std::vector<StructInfo> infos;  // of the outputs that are there
    std::vector<Expr> known;        // the constant that an output is, else null
    std::vector<std::string> same;  // the input that an output is, else ""
  };

  void see(const NodeProto& node, int64_t opset, const GraphValues& values) {
    Seen seen{&node, opset, {}, {}, {}, {}};
    std::set<std::string> given(node.input().begin(), node.input().end());
    each_read(node, [&](const std::string& name) {
      if (values.count(name) && given.insert(name).second) seen.captures.push_back(name);
    });
    for (const std::string& name : given)
      if (const auto it = values.find(name); it != values.end() && !weights_.count(name)) {
        const Expr constant = constant_of(it->second);
        if (constant) weights_[name] = ir::with_origin(constant, place(name));
      }
    for (const std::string& name : node.output()) {
      if (name.empty()) continue;
      const GraphValue& value = values.at(name);
      seen.infos.push_back(info_of(value));
      seen.known.push_back(constant_of(value));
      seen.same.push_back("");
      if (!seen.known.back() && value.tensor)
        for (const std::string& input : node.input())
          if (const auto it = values.find(input); it != values.end() && it->second.tensor.get() == value.tensor.get())
            seen.same.back() = input;
    }
    seen_.push_back(std::move(seen));
  }

  static Expr constant_of(const GraphValue& value) {
    if (value.tensor) {
      const auto* call = value.tensor.as<relax::Call>();  // a constant of strings
      return value.tensor.is<relax::Constant>() || (call && call->args.empty()) ? value.tensor : Expr();
    }
    const ir::TensorData data = value.integers ? tensor_of(value) : ir::TensorData();
    return data ? relax::constant(data) : Expr();
  }

  static StructInfo info_of(const GraphValue& value) {
    return value.tensor ? value.tensor->struct_info : relax::tensor_info(value.dims, value.dtype);
  }

  ir::Origin place(const std::string& name) const {
    return std::make_shared<const support::Place>(support::ModelNode{model_.name, name, "initializer"});
  }

  void read_symbols(const std::vector<relax::Var>& params) {
    for (const relax::Var& param : params)
      if (const auto* info = relax::as_tensor(param); info && info->shape)
        for (const ir::Expr& extent : *info->shape)
          if (extent.is<ir::VarNode>()) symbols_.insert(extent.get());
  }

  // What holds without the nodes' programs: extents in the symbols of the parameters, else the rank.
  StructInfo lasting(const StructInfo& info) const {
    const auto* tensor = info.as<relax::TensorStructInfo>();
    if (!tensor || !tensor->shape) return info;
    for (const ir::Expr& extent : *tensor->shape)
      for (const ir::Var& symbol : ir::free_vars(extent))
        if (!symbols_.count(symbol.get())) return relax::tensor_info_of_rank(tensor->ndim, tensor->dtype);
    return info;
  }

  // The value of that name in the new function; it comes from a node before, or the model gives it.
  Expr made_value(const std::string& name) {
    if (const auto it = made_.find(name); it != made_.end()) return it->second;
    if (const auto it = weights_.find(name); it != weights_.end()) return made_[name] = it->second;
    for (const auto& tensor : model_.proto->graph().initializer())  // one that is an output as it is
      if (tensor.name() == name && !holds_strings(tensor))
        return made_[name] = ir::with_origin(
                   relax::constant(read_tensor(model_, tensor, name, model_.place()).value_or_throw()), place(name));
    throw support::DiagnosticError(relax::wrong(relax::codes::wrong_arguments,
                                                "the value '" + name + "' is not one that a node of the graph gives"));
  }

  void emit(relax::BlockBuilder& builder, const Seen& seen) {
    const NodeProto& node = *seen.node;
    std::vector<std::string> names;
    for (const std::string& name : node.output())
      if (!name.empty()) names.push_back(name);
    bool is_needed = false;
    for (size_t i = 0; i < names.size(); ++i) {
      if (seen.known[i])
        made_[names[i]] = ir::with_origin(seen.known[i], place(names[i]));
      else if (!seen.same[i].empty())
        made_[names[i]] = made_value(seen.same[i]);
      else
        is_needed = true;
    }
    if (!is_needed) return;
    std::vector<Expr> args;
    for (const std::string& input : node.input()) args.push_back(input.empty() ? Expr() : made_value(input));
    for (const std::string& name : seen.captures) args.push_back(made_value(name));
    std::vector<StructInfo> infos;
    for (const StructInfo& info : seen.infos) infos.push_back(lasting(info));
    const relax::AttributesRef attributes = attributes_of(seen);
    const relax::Operator& op =
        static_cast<const NodeCallAttributes&>(*attributes).draw != 0 ? random_node_operator : node_operator;
    const support::Place where =
        support::ModelNode{model_.name, node.name().empty() ? names[0] : node.name(), node.op_type()};
    const auto origin = std::make_shared<const support::Place>(where);
    builder.set_origin(origin);
    const Expr value = builder.emit(
        relax::make_call(op, std::move(args), attributes, origin, std::move(infos)).value_or_throw(), names[0]);
    for (size_t i = 0; i < names.size(); ++i)
      if (!made_.count(names[i]))
        made_[names[i]] =
            names.size() == 1 ? value : builder.emit(builder.tuple_item(value, static_cast<int64_t>(i)), names[i]);
  }

  relax::AttributesRef attributes_of(const Seen& seen) {
    NodeProto body;
    *body.mutable_attribute() = seen.node->attribute();
    payloads_.fill(body);
    return attributes_with<NodeCallAttributes>([&](NodeCallAttributes& a) {
      a.op = seen.node->op_type();
      a.domain = domain_of(seen.node->domain());
      a.opset = seen.opset;
      a.body = body_text(body);
      a.captures = seen.captures;
      a.draw = draws_random_numbers(*seen.node) ? ++draws_ : 0;
      a.name = seen.node->name();
      a.outputs.assign(seen.node->output().begin(), seen.node->output().end());
    });
  }

  ir::Value::Map opsets() const {
    ir::Value::Map map;
    for (const auto& import : model_.proto->opset_import()) map[domain_of(import.domain())] = import.version();
    return map;
  }

  const Model& model_;
  const ImportOptions& options_;
  const int nodes_;  // before functions were inlined
  Payloads payloads_;
  std::vector<Seen> seen_;
  std::unordered_map<std::string, Expr> weights_, made_;
  std::unordered_set<const ir::Node*> symbols_;
  int64_t draws_ = 0;
};

Result<ir::IRModule> import_read(const Model& read, const ImportOptions& options) {
  const Model model = TRY(inline_functions(read));
  return NodeImporter(model, options, read.proto->graph().node_size()).run();
}

}  // namespace

Result<ir::IRModule> import_nodes(const std::string& path, const ImportOptions& options) {
  return support::catch_diagnostics(
      [&]() -> Result<ir::IRModule> { return import_read(TRY(read_model(path)), options); });
}

Result<ir::IRModule> import_nodes(const ModelBytes& bytes, const ImportOptions& options) {
  return support::catch_diagnostics([&]() -> Result<ir::IRModule> {
    return import_read(TRY(read_model({*bytes.content, bytes.content}, bytes.name, bytes.folder)), options);
  });
}

}  // namespace lathe::onnx
