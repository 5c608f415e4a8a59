#include "interchange/onnx/graph/graph_import.h"

#include "interchange/onnx/codes.h"
#include "interchange/onnx/constants.h"
#include "interchange/onnx/graph/check_node.h"
#include "interchange/onnx/graph/inside.h"
#include "interchange/onnx/input_types.h"
#include "interchange/onnx/inputs.h"
#include "interchange/onnx/read/names.h"
#include "onnx_schema.pb.h"

namespace lathe::onnx {

using schema::FunctionProto;
using schema::NodeProto;
using support::Diagnostic;
using support::DiagnosticError;
using support::Diagnostics;
using support::Result;

namespace {

constexpr size_t most_notes = 8;  // of operands
// Nodes converted in all. The body of a loop whose shapes change is converted more than once, and so loops inside loops
// could take time without bound.
constexpr int64_t most_conversions = 1'000'000;

// Checks that the builder emits meanwhile tell of the node's operands.
class OperandsSaid {
 public:
  OperandsSaid(relax::BlockBuilder& builder, const NodeImport& import)
      : builder_(builder), before_(builder.set_operands([&import] { return import.operands(); })) {}
  OperandsSaid(const OperandsSaid&) = delete;
  OperandsSaid& operator=(const OperandsSaid&) = delete;
  ~OperandsSaid() { builder_.set_operands(std::move(before_)); }

 private:
  relax::BlockBuilder& builder_;
  relax::BlockBuilder::Describe before_;
};

void fail_outputs(Scope& scope, const NodeProto& node) {
  for (const std::string& name : node.output())
    if (!name.empty()) scope.values[name] = {.failed = true};
}

// Not one of a node in a function that this node calls, which has operands of its own.
bool is_at(const support::Place& place, const support::ModelNode& node) {
  const auto* at = std::get_if<support::ModelNode>(&place);
  return at && at->node == node.node && at->operator_type == node.operator_type;
}

// What the operands are and where they come from.
void add_notes(Diagnostic& d, const Scope& scope, const NodeProto& node) {
  for (const std::string& name : node.input()) {
    const auto it = scope.values.find(name);
    if (it == scope.values.end() || it->second.failed || d.notes.size() >= most_notes) continue;
    const GraphValue& value = it->second;
    const auto* info = relax::as_tensor(value.tensor);
    d.note(in_quotes(name) + ", " + value.given_by +
           (info ? ", is " + relax::text_of(*info)
            : value.integers
                ? ", is " + value.dtype.str() + " of " + std::to_string(value.integers->size()) + " elements"
                : ", is " + kind_of(value)));
  }
}

}  // namespace

GraphImport::GraphImport(const Model& model, const ImportOptions& options, SeeNode see)
    : model_(model), options_(options), see_(std::move(see)), functions_(*model.proto), graph_(model.proto->graph()) {}

bool GraphImport::fits() {
  strict_ranks_ = true;
  return support::catch_diagnostics([&] { return run(); }).ok();
}

Result<ir::IRModule> GraphImport::run() {
  Scope scope;
  scope.opsets = TRY(read_opsets(model_));
  if (graph_.output().empty()) return refuse(codes::wrong_graph, "the graph has no outputs");
  TRY(check_operators(model_, functions_, scope.opsets));
  TRY(check_expansion(model_, functions_));
  NodeList list = TRY(list_nodes(model_, graph_));
  const std::vector<int> order = TRY(order_nodes(model_, list));
  GraphInputs inputs = TRY(read_inputs(model_, graph_, options_));
  TRY(add_initializers(model_, list, graph_, scope.values));
  scope.ranks = declared_ranks(graph_);

  std::vector<relax::Var> params;
  for (const relax::Var& param : inputs.params) {
    scope.values[param->name] = {.tensor = param, .given_by = "the graph's input"};
    params.push_back(param);
  }
  ir::Value::List names;
  for (const auto& output : graph_.output()) names.emplace_back(output.name());
  ir::Attributes attributes{{"output_names", std::move(names)}};
  for (const auto& [symbol, sizes] : inputs.sizes) relax::tell_sizes(attributes, symbol, sizes);
  for (const ir::Var& symbol : inputs.symbols)
    if (const auto told = inputs.sizes.find(symbol->name); told != inputs.sizes.end())
      bounds_.tell(symbol, told->second);
  builder_.begin_function("main", std::move(params), std::move(attributes));
  builder_.begin_dataflow();
  scope.results = [&](Scope& self) { return results(self); };
  const std::vector<Expr> made = to_end_of(scope, list.nodes, order);
  if (!diagnostics_.empty()) return std::move(diagnostics_);
  if (strict_ranks_) check_declared_ranks(scope, made);
  finish(made);
  return builder_.finish();
}

void GraphImport::convert_nodes(Scope& scope, const std::vector<const NodeProto*>& nodes,
                                const std::vector<int>& order) {
  scope.nodes = &nodes;
  scope.order = &order;
  convert_from(scope, 0);
}

void GraphImport::convert_from(Scope& scope, size_t first) {
  for (scope.at = first; scope.at < scope.order->size(); ++scope.at) {
    const int index = (*scope.order)[scope.at];
    if (diagnostics_.size() >= most_diagnostics) return;
    if (++converted_ > most_conversions) {
      diagnostics_.push_back(refuse(codes::too_large, "the model has more than " + std::to_string(most_conversions) +
                                                          " nodes, those of loops counted as often as they are read"));
      return;
    }
    const NodeProto& node = *(*scope.nodes)[static_cast<size_t>(index)];
    // A name grows with each call of a function around it; what is shown stays a line.
    const support::ModelNode place{model_.name, printable(scope.prefix + node_name(node, index)),
                                   printable(node.op_type())};
    try {
      if (!convert(scope, node, place)) fail_outputs(scope, node);
    } catch (const DiagnosticError& error) {
      for (Diagnostic d : error.diagnostics) {
        if (std::holds_alternative<std::monostate>(d.place)) d.place = place;
        if (d.notes.empty() && is_at(d.place, place)) add_notes(d, scope, node);
        if (diagnostics_.size() < most_diagnostics) diagnostics_.push_back(std::move(d));
      }
      fail_outputs(scope, node);
    }
  }
}

std::vector<Expr> GraphImport::to_end_of(Scope& scope, const std::vector<const NodeProto*>& nodes,
                                         const std::vector<int>& order) {
  try {
    convert_nodes(scope, nodes, order);
  } catch (Ended& ended) {
    return std::move(ended.results);
  }
  return diagnostics_.empty() ? scope.results(scope) : std::vector<Expr>();
}

void GraphImport::throw_what_was_said() const {
  if (!diagnostics_.empty()) throw DiagnosticError(Diagnostics{});
}

bool GraphImport::convert(Scope& scope, const NodeProto& node, const support::ModelNode& place) {
  std::vector<GraphValue*> inputs;
  for (const std::string& name : node.input()) {
    GraphValue* value = name.empty() ? nullptr : scope.find(name);
    if (value && value->failed) return false;
    inputs.push_back(value);
  }
  while (!inputs.empty() && !inputs.back()) inputs.pop_back();
  const bool is_computed_once =
      !inputs.empty() && std::all_of(inputs.begin(), inputs.end(), [](const GraphValue* value) {
        return !value || value->is_fixed() || (value->integers && constants_of(*value->integers));
      });
  NodeAttributes attributes(model_, node, scope.given, place);
  builder_.set_origin(std::make_shared<const support::Place>(place));
  if (const FunctionProto* function = functions_.find(node))
    return call(scope, node, *function, inputs, attributes, place);

  const std::string domain = domain_of(node.domain());
  const OperatorRow& row = *find_operator(domain, node.op_type());
  const int64_t opset = scope.opsets.at(domain);
  const int64_t version = *(std::upper_bound(row.versions.begin(), row.versions.end(), opset) - 1);
  const std::vector<std::string> outputs(node.output().begin(), node.output().end());
  const std::vector<std::string> names(node.input().begin(), node.input().end());
  Inside graphs(*this, scope, node, place);
  NodeImport import(builder_, attributes, std::move(inputs), outputs, version, place, &graphs);
  import.declare_ranks(&scope.ranks);
  import.name_inputs(&names);
  import.know_sizes({&bounds_, &scope.same_sizes});
  const OperandsSaid operands_said(builder_, import);
  check_counts(row, import);
  check_input_types(domain, node.op_type(), import);
  const bool has_graphs = row.reads_around || std::any_of(node.attribute().begin(), node.attribute().end(),
                                                          [](const auto& a) { return a.has_g(); });
  const bool folds = row.fold && import.all_known() && row.fold(import) && import.keeps_integers();
  if (!folds && (has_graphs || !fold_constants(row, import, attributes))) {
    import.clear_results();
    row.convert(import);
    keep_strings(domain, node.op_type(), import);
  }
  attributes.check_all_used();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].empty()) continue;
    GraphValue& value = import.results()[i];
    if (!value.tensor && !value.integers)
      import.fail(codes::unsupported, "the output " + in_quotes(outputs[i]) + " is not one that Lathe computes");
    check_shape(import, value);
    name_long_extents(builder_, scope, value);
    value.given_by = "the output of " + in_quotes(place.node);
    value.is_computed_once = is_computed_once && !has_graphs;
    scope.values[outputs[i]] = std::move(value);
  }
  if (see_ && !scope.around && !scope.given) see_(node, opset, scope.values);
  return true;
}

std::vector<Expr> GraphImport::results(Scope& scope) {
  std::vector<Expr> made;
  for (const auto& output : graph_.output()) made.push_back(tensor_of(builder_, scope.values.at(output.name())));
  return made;
}

void GraphImport::check_declared_ranks(const Scope& scope, const std::vector<Expr>& results) const {
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string& name = graph_.output(static_cast<int>(i)).name();
    const auto* info = relax::as_tensor(results[i]);
    const auto declared = scope.ranks.find(name);
    if (info && declared != scope.ranks.end() && declared->second != info->ndim)
      throw DiagnosticError(
          refuse(codes::wrong_shape, "the output " + in_quotes(name) + " has " + std::to_string(info->ndim) +
                                         " dimensions, but the graph declares " + std::to_string(declared->second)));
  }
}

void GraphImport::finish(const std::vector<Expr>& made) {
  std::vector<Expr> results;
  for (const auto& output : graph_.output())
    results.push_back(builder_.emit_output(made[results.size()], identifier(output.name())));
  builder_.end_block();
  builder_.end_function(results.size() == 1 ? results[0] : Expr(ir::make<relax::Tuple>(results)));
}

}  // namespace lathe::onnx
