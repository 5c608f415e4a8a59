#include "interchange/onnx/nodes/write_model.h"

#include "interchange/onnx/codes.h"
#include "interchange/onnx/nodes/import_nodes.h"
#include "interchange/onnx/nodes/node_call.h"
#include "interchange/onnx/types.h"
#include "onnx_schema.pb.h"
#include "relax/strings.h"

namespace lathe::onnx {

namespace {

using relax::Expr;
using schema::NodeProto;
using support::Diagnostic;
using support::DiagnosticError;

constexpr uint64_t data_alignment = 4096;       // of tensors in the data file, so that they can be mapped
constexpr uint64_t largest_model = 2147483647;  // bytes that protobuf serialises

[[noreturn]] void refuse(const std::string& message) {
  throw DiagnosticError(Diagnostic{.code = codes::not_exported, .message = message});
}

using Renames = std::map<std::string, std::string>;

// Names that a graph reads from around it become others; what it defines itself it keeps.
void rename_reads(schema::GraphProto& graph, Renames names) {
  const auto defines = [&](const std::string& name) { names.erase(name); };
  for (const auto& input : graph.input()) defines(input.name());
  for (const auto& tensor : graph.initializer()) defines(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) defines(tensor.values().name());
  for (const NodeProto& node : graph.node())
    for (const std::string& output : node.output()) defines(output);
  if (names.empty()) return;
  const auto rename = [&](std::string& name) {
    if (const auto it = names.find(name); it != names.end()) name = it->second;
  };
  for (NodeProto& node : *graph.mutable_node()) {
    for (std::string& input : *node.mutable_input()) rename(input);
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.has_g()) rename_reads(*attribute.mutable_g(), names);
  }
  for (auto& output : *graph.mutable_output()) {
    std::string name = output.name();
    rename(name);
    output.set_name(name);
  }
}

class ModelWriter {
 public:
  ModelWriter(const ir::IRModule& module, const WriteOptions& options) : options_(options) {
    function_ = module.find_as<relax::FunctionNode>("main");
    if (!function_) refuse("the module has no function 'main'");
    if (const auto* list = function_->attrs.get<ir::Value::List>("output_names"))
      for (const ir::Value& name : *list)
        if (const auto* text = name.get<std::string>()) output_names_.push_back(renamed(*text));
  }

  WrittenModel run() {
    const auto* body = function_->body.as<relax::SeqExpr>();
    if (const auto* tuple = body->body.as<relax::Tuple>())
      results_ = tuple->items;
    else
      results_ = {body->body};
    for (size_t i = output_names_.size(); i < results_.size(); ++i)
      output_names_.push_back("output_" + std::to_string(i));
    graph_ = model_.mutable_graph();
    read_attributes();
    name_values(*body);
    for (const relax::Var& param : function_->params) declare(*graph_->add_input(), names_.at(param.get()), param);
    for (const relax::BindingBlock& block : body->blocks)
      for (const relax::Binding& binding : block->bindings) write(binding);
    for (size_t i = 0; i < results_.size(); ++i) output(output_names_[i], results_[i]);
    return finish();
  }

 private:
  void read_attributes() {
    const auto& attrs = function_->attrs;
    model_.set_ir_version(attrs.get_or<int64_t>(ir_version_attribute, 8));
    model_.set_producer_name("lathe");
    graph_->set_name(attrs.get_or<std::string>(graph_name_attribute, "main"));
    if (const auto* opsets = attrs.get<ir::Value::Map>(opsets_attribute))
      for (const auto& [domain, version] : *opsets)
        if (const auto* number = version.get<int64_t>()) opsets_[domain] = *number;
  }

  // ---- names ----

  // Inputs and outputs have their names for certain; then values take those that their nodes had, where they are free.
  void name_values(const relax::SeqExpr& body) {
    for (const relax::Var& param : function_->params) names_[param.get()] = take(param->name);
    for (const relax::BindingBlock& block : body.blocks)
      for (const relax::Binding& binding : block->bindings)
        if (const auto* bound = binding.as<relax::VarBinding>()) values_[bound->var.get()] = bound->value;
    for (size_t i = 0; i < results_.size(); ++i) {
      const Expr value = behind(results_[i]);
      const bool is_computed = value.is<relax::VarNode>() && values_.count(value.get());
      std::string& name = output_names_[i];
      const bool is_input = std::any_of(function_->params.begin(), function_->params.end(),
                                        [&](const relax::Var& param) { return names_.at(param.get()) == name; });
      if (!is_input) taken_.insert(name);
      if (is_computed && !is_input) names_.try_emplace(value.get(), name);
    }
  }

  std::string renamed(const std::string& name) {
    const auto it = options_.renames.find(name);
    if (it == options_.renames.end()) return name;
    renamed_.insert(name);
    return it->second;
  }

  std::string take(const std::string& wanted) {
    const std::string hint = wanted.empty() ? "value" : renamed(wanted);
    std::string name = hint;
    for (int i = 1; !taken_.insert(name).second; ++i) name = hint + "_" + std::to_string(i);
    return name;
  }

  // The variable or constant that a variable stands for.
  Expr behind(Expr value) const {
    for (auto it = values_.find(value.get()); it != values_.end(); it = values_.find(value.get())) {
      if (!it->second.is<relax::VarNode>() && !it->second.is<relax::Constant>()) break;
      value = it->second;
    }
    return value;
  }

  const std::string& name_of(const Expr& e) {
    const Expr value = behind(e);
    if (const auto* constant = value.as<relax::Constant>()) return initializer(*constant);
    const auto it = names_.find(value.get());
    if (it == names_.end()) refuse("a value is used that no node gives");
    return it->second;
  }

  // ---- tensors ----

  const std::string& initializer(const relax::Constant& constant) {
    const auto [it, is_new] = constants_.try_emplace(constant.data.get());
    if (!is_new) return it->second;
    const auto* place = constant.origin() ? std::get_if<support::ModelNode>(constant.origin().get()) : nullptr;
    it->second = take(place && !place->node.empty() ? place->node : "constant");
    auto& tensor = *graph_->add_initializer();
    tensor.set_name(it->second);
    tensor.set_data_type(element_number(constant.data->dtype));
    for (const int64_t extent : constant.data->shape) tensor.add_dims(extent);
    if (options_.data_file.empty() || constant.data->byte_size() < options_.least_outside)
      tensor.set_raw_data(std::string(constant.data->view()));
    else
      put_outside(tensor, constant.data);
    return it->second;
  }

  void put_outside(schema::TensorProto& tensor, const ir::TensorData& data) {
    const uint64_t offset = (data_end_ + data_alignment - 1) / data_alignment * data_alignment;
    written_.data.emplace_back(offset, data);
    data_end_ = offset + static_cast<uint64_t>(data->byte_size());
    tensor.set_data_location(schema::TensorProto::EXTERNAL);
    const std::pair<const char*, std::string> entries[] = {{"location", options_.data_file},
                                                           {"offset", std::to_string(offset)},
                                                           {"length", std::to_string(data->byte_size())}};
    for (const auto& [key, value] : entries) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
  }

  void strings(const relax::Var& var, const relax::StringsAttributes& data) {
    names_.try_emplace(var.get(), take(var->name));
    auto& tensor = *graph_->add_initializer();
    tensor.set_name(names_.at(var.get()));
    tensor.set_data_type(schema::TensorProto::STRING);
    for (const int64_t extent : data.shape) tensor.add_dims(extent);
    for (const std::string& text : data.texts) tensor.add_string_data(text);
  }

  // ---- values ----

  static bool declare(schema::ValueInfoProto& info, const std::string& name, const Expr& value) {
    info.set_name(name);
    auto type = type_of(value->struct_info);
    if (type) *info.mutable_type() = std::move(*type);
    return type.has_value();
  }

  void write(const relax::Binding& binding) {
    const auto* bound = binding.as<relax::VarBinding>();
    if (!bound) refuse("a match_cast has no form in ONNX");
    const Expr& value = bound->value;
    if (value.is<relax::VarNode>() || value.is<relax::Constant>()) return;  // another name of it
    if (const auto* item = value.as<relax::TupleGetItem>()) return name_item(bound->var, *item);
    const auto* call = value.as<relax::Call>();
    const relax::Operator* op = call ? relax::callee_operator(*call) : nullptr;
    if (const NodeCallAttributes* attributes = as_node_call(value)) return node(bound->var, *call, *attributes);
    if (op == &relax::strings_operator)
      return strings(bound->var, static_cast<const relax::StringsAttributes&>(*call->attributes));
    refuse(op ? "R." + std::string(op->name) + " is not written as ONNX"
              : "'" + bound->var->name + "' is no node of ONNX");
  }

  // The items of a node's tuple are named when the node is written.
  void name_item(const relax::Var& var, const relax::TupleGetItem& item) {
    const auto it = items_.find(behind(item.tuple).get());
    if (it == items_.end()) refuse("'" + var->name + "' is an item of a tuple that no node gives");
    std::string& name = it->second.at(static_cast<size_t>(item.index));
    const auto [own, is_new] = names_.try_emplace(var.get(), name);
    if (!is_new) {  // an output of the model: the node gives it under that name
      rename_output(name, own->second);
      name = own->second;
    }
    if (var->struct_info) declare_inside(own->second, var);
  }

  // Before anything reads it.
  void rename_output(const std::string& from, const std::string& to) {
    for (int n = graph_->node_size(); n-- > 0;)
      for (std::string& output : *graph_->mutable_node(n)->mutable_output())
        if (output == from) {
          output = to;
          return;
        }
  }

  void declare_inside(const std::string& name, const Expr& value) {
    if (std::find(output_names_.begin(), output_names_.end(), name) != output_names_.end()) return;
    schema::ValueInfoProto info;
    if (declare(info, name, value)) *graph_->add_value_info() = std::move(info);
  }

  void node(const relax::Var& var, const relax::Call& call, const NodeCallAttributes& attributes) {
    NodeProto made = body_of(attributes).value_or_throw();
    const size_t captured = attributes.captures.size();
    if (captured > call.args.size()) refuse("the node '" + attributes.name + "' captures more than it is given");
    const size_t inputs = call.args.size() - captured;
    const auto [opset, is_new] = opsets_.try_emplace(attributes.domain, attributes.opset);
    if (!is_new && opset->second != attributes.opset)
      refuse("nodes are of opset " + std::to_string(opset->second) + " and of opset " +
             std::to_string(attributes.opset));
    made.set_name(attributes.name);
    made.set_op_type(attributes.op);
    made.set_domain(attributes.domain);
    for (size_t i = 0; i < inputs; ++i) made.add_input(call.args[i] ? name_of(call.args[i]) : "");
    Renames renames;
    for (size_t k = 0; k < captured; ++k) {
      const std::string& name = name_of(call.args[inputs + k]);
      if (name != attributes.captures[k]) renames[attributes.captures[k]] = name;
    }
    for (auto& attribute : *made.mutable_attribute())
      if (attribute.has_g() && !renames.empty()) rename_reads(*attribute.mutable_g(), renames);
    name_outputs(var, attributes, made);
    *graph_->add_node() = std::move(made);
    ++written_.nodes;
  }

  void name_outputs(const relax::Var& var, const NodeCallAttributes& attributes, NodeProto& made) {
    const size_t there = attributes.given_outputs().size();
    std::vector<std::string> names;
    for (const std::string& hint : attributes.outputs) {
      if (hint.empty()) {
        made.add_output("");
        continue;
      }
      if (there == 1) {
        if (!names_.count(var.get())) names_[var.get()] = take(hint);
        names.push_back(names_.at(var.get()));
        declare_inside(names.back(), var);
      } else {
        names.push_back(take(hint));
      }
      made.add_output(names.back());
    }
    if (there > 1) items_[var.get()] = std::move(names);
  }

  // An output that is an input, a constant, or another output too is given by an Identity.
  void output(const std::string& name, const Expr& value) {
    if (const std::string& given = name_of(value); given != name) {
      NodeProto& identity = *graph_->add_node();
      identity.set_op_type("Identity");
      identity.add_input(given);
      identity.add_output(name);
      ++written_.nodes;
    }
    declare(*graph_->add_output(), name, value);
  }

  WrittenModel finish() {
    for (const auto& [from, to] : options_.renames)
      if (!renamed_.count(from)) refuse("there is no value '" + from + "' to be called '" + to + "'");
    for (const auto& [domain, version] : opsets_) {
      auto& import = *model_.add_opset_import();
      import.set_domain(domain);
      import.set_version(version);
    }
    const uint64_t size = model_.ByteSizeLong();
    if (size > largest_model)
      refuse("the model would have " + std::to_string(size) + " bytes, and a file of ONNX holds " +
             std::to_string(largest_model) + ": its tensors must go into a file beside it");
    written_.model = model_.SerializeAsString();
    return std::move(written_);
  }

  const WriteOptions& options_;
  relax::Function function_;
  std::vector<std::string> output_names_;
  std::vector<Expr> results_;
  std::map<std::string, int64_t> opsets_;
  schema::ModelProto model_;
  schema::GraphProto* graph_ = nullptr;
  std::unordered_map<const ir::Node*, Expr> values_;                     // that variables are bound to
  std::unordered_map<const ir::Node*, std::string> names_;               // of variables
  std::unordered_map<const ir::Node*, std::vector<std::string>> items_;  // of tuples
  std::unordered_map<const ir::TensorDataNode*, std::string> constants_;
  std::unordered_set<std::string> taken_, renamed_;
  uint64_t data_end_ = 0;
  WrittenModel written_;
};

}  // namespace

support::Result<WrittenModel> write_onnx(const ir::IRModule& module, const WriteOptions& options) {
  return support::catch_diagnostics(
      [&]() -> support::Result<WrittenModel> { return ModelWriter(module, options).run(); });
}

}  // namespace lathe::onnx
