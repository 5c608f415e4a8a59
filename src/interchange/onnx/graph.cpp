#include "interchange/onnx/graph.h"

#include <deque>

#include "interchange/onnx/codes.h"
#include "interchange/onnx/constants.h"
#include "interchange/onnx/input_types.h"
#include "interchange/onnx/inputs.h"
#include "interchange/onnx/lengths.h"
#include "interchange/onnx/node.h"
#include "interchange/onnx/order.h"
#include "interchange/onnx/read/names.h"
#include "onnx_schema.pb.h"
#include "relax/strings.h"
#include "support/parallel.h"

namespace lathe::onnx {

using schema::FunctionProto;
using schema::GraphProto;
using schema::NodeProto;
using schema::TensorProto;
using support::Diagnostic;
using support::DiagnosticError;
using support::Diagnostics;
using support::Result;

namespace {

constexpr size_t most_notes = 8;        // of operands
constexpr size_t many_bytes = 1 << 20;  // of a model, which several threads read
constexpr int64_t highest_rank = 64;    // as of the graph's inputs and of constants
// Copies of what comes after branches of different ranks; each such branch may have more inside.
constexpr int most_ends = 64;
// Nodes converted in all. The body of a loop whose shapes change is converted more than once, and so loops inside loops
// could take time without bound.
constexpr int64_t most_conversions = 1'000'000;

// The names that nodes of one graph or one call of a function see.
struct Scope {
  GraphValues values;
  Opsets opsets;
  const NodeAttributes* given = nullptr;              // attributes of the function's call
  std::string prefix;                                 // of node names: "call/"
  std::unordered_set<std::string> absent;             // inputs that the function's call leaves out
  Scope* around = nullptr;                            // of the graph that holds this one
  std::unordered_map<std::string, int64_t> ranks;     // that the graph declares of its outputs and of values between
  std::vector<std::pair<ir::Expr, ir::Var>> extents;  // long ones that have a symbol of their own
  const std::vector<const NodeProto*>* nodes = nullptr;
  const std::vector<int>* order = nullptr;  // of the nodes
  size_t at = 0;                            // in the order: the node that is converted

  // What comes after the last node: the end of a function (the model's, a loop's body), more of the scope that this
  // graph's node stands in, or, for now, nothing that could be said (a branch by itself; a copy for a gradient).
  enum class End { function, outer, alone, copy };
  End end = End::function;
  std::function<std::vector<Expr>(Scope&)> results;  // of a function: its outputs
  Scope* outer = nullptr;
  std::function<void(Scope& self, Scope& outer)> bind;  // makes the graph's outputs those of its node

  // The value of that name, or null. One from around is copied: what the inside learns of it holds inside only.
  GraphValue* find(const std::string& name) {
    const auto it = values.find(name);
    if (it != values.end()) return &it->second;
    const GraphValue* outer = around && !absent.count(name) ? around->find(name) : nullptr;
    return outer ? &(values[name] = *outer) : nullptr;
  }
};

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

// A scope and the ones that go on where it ends, as they stand, to convert what comes after a node once more.
std::deque<Scope> copy_to_end(const Scope& scope) {
  std::deque<Scope> copies{scope};
  while (copies.back().end == Scope::End::outer) {
    Scope& inner = copies.back();
    copies.push_back(*inner.outer);
    if (inner.around == inner.outer) inner.around = &copies.back();
    inner.outer = &copies.back();
  }
  return copies;
}

// Thrown to where a function's graph is converted, with its outputs: its nodes were converted inside branches.
struct Ended {
  std::vector<Expr> results;
};

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

class GraphImport {
 public:
  GraphImport(const Model& model, const ImportOptions& options, SeeNode see)
      : model_(model),
        options_(options),
        see_(std::move(see)),
        functions_(*model.proto),
        graph_(model.proto->graph()) {}

  int64_t converted() const { return converted_; }

  // Whether it can be converted, to results of the ranks that the graph declares.
  bool fits() {
    strict_ranks_ = true;
    return support::catch_diagnostics([&] { return run(); }).ok();
  }

  Result<ir::IRModule> run() {
    Scope scope;
    scope.opsets = TRY(read_opsets(model_));
    if (graph_.output().empty()) return refuse(codes::wrong_graph, "the graph has no outputs");
    TRY(check_operators(model_, functions_, scope.opsets));
    TRY(check_expansion(model_, functions_));
    NodeList list = TRY(list_nodes(graph_));
    const std::vector<int> order = TRY(order_nodes(model_, list));
    GraphInputs inputs = TRY(read_inputs(model_, graph_, options_));
    TRY(add_initializers(scope, list, graph_));
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
    builder_.begin_function("main", std::move(params), std::move(attributes));
    builder_.begin_dataflow();
    scope.results = [&](Scope& self) { return results(self); };
    const std::vector<Expr> made = to_end_of(scope, list.nodes, order);
    if (!diagnostics_.empty()) return std::move(diagnostics_);
    if (strict_ranks_) check_declared_ranks(scope, made);
    finish(made);
    return builder_.finish();
  }

 private:
  Diagnostic refuse(support::Code code, std::string message) const {
    return {.code = code, .place = model_.place(), .message = std::move(message)};
  }

  // ---- the graph's names ----

  Result<NodeList> list_nodes(const GraphProto& graph) const {
    NodeList list;
    std::unordered_set<std::string> weights, inputs;
    const auto add_weight = [&](const std::string& name) -> support::Status {
      if (name.empty()) return refuse(codes::wrong_graph, "an initializer of the graph has no name");
      if (!weights.insert(name).second)
        return refuse(codes::duplicate_name, "two initializers of the graph are called " + in_quotes(name));
      return support::success();
    };
    for (const auto& tensor : graph.initializer()) TRY(add_weight(tensor.name()));
    for (const auto& tensor : graph.sparse_initializer()) TRY(add_weight(tensor.values().name()));
    for (const auto& input : graph.input())
      if (!inputs.insert(input.name()).second)
        return refuse(codes::duplicate_name, "two inputs of the graph are called " + in_quotes(input.name()));
    for (const NodeProto& node : graph.node()) list.nodes.push_back(&node);
    for (const auto& output : graph.output()) list.outputs.push_back(output.name());
    list.given = std::move(weights);
    list.given.merge(inputs);
    return list;
  }

  // Only initializers that are read become constants.
  support::Status add_initializers(Scope& scope, const NodeList& list, const GraphProto& graph) {
    std::unordered_set<std::string> read(list.outputs.begin(), list.outputs.end());
    for (const NodeProto* node : list.nodes) each_read(*node, [&](const std::string& name) { read.insert(name); });
    Diagnostics wrong;
    const auto constant_of = [](auto data) {
      if constexpr (std::is_same_v<std::decay_t<decltype(data)>, Strings>)
        return relax::strings(std::move(data.texts), std::move(data.shape));
      else
        return relax::constant(std::move(data));
    };
    const auto add = [&](const std::string& name, auto data) {
      if (!data.ok()) {
        for (const Diagnostic& d : data.diagnostics())
          if (wrong.size() < most_diagnostics) wrong.push_back(d);
        return;
      }
      scope.values[name] = {.tensor = constant_of(std::move(*data)), .given_by = "the initializer"};
    };
    const auto what = [](const std::string& name) { return "the initializer " + in_quotes(name); };
    std::vector<const TensorProto*> tensors;
    for (const auto& tensor : graph.initializer())
      if (read.count(tensor.name()) && holds_strings(tensor))
        add(tensor.name(), read_strings(model_, tensor, what(tensor.name()), model_.place()));
      else if (read.count(tensor.name()))
        tensors.push_back(&tensor);
    // All their bytes are read, and copied where they do not lie aligned, which takes long where there are many.
    std::vector<Result<ir::TensorData>> data(tensors.size(), ir::TensorData());
    const bool is_much = model_.file.view.size() > many_bytes ||
                         std::any_of(tensors.begin(), tensors.end(), [](const TensorProto* tensor) {
                           return tensor->data_location() == TensorProto::EXTERNAL;
                         });
    support::parallel_for(
        tensors.size(), is_much ? static_cast<int>(std::thread::hardware_concurrency()) : 1,
        [&](size_t i) { data[i] = read_tensor(model_, *tensors[i], what(tensors[i]->name()), model_.place()); });
    for (size_t i = 0; i < tensors.size(); ++i) add(tensors[i]->name(), std::move(data[i]));
    for (const auto& tensor : graph.sparse_initializer())
      if (const std::string& name = tensor.values().name(); read.count(name))
        add(name, read_sparse_tensor(model_, tensor, what(name), model_.place()));
    if (!wrong.empty()) return wrong;
    return support::success();
  }

  // ---- nodes ----

  void convert_nodes(Scope& scope, const std::vector<const NodeProto*>& nodes, const std::vector<int>& order) {
    scope.nodes = &nodes;
    scope.order = &order;
    convert_from(scope, 0);
  }

  // The scope's nodes from that place of their order on.
  void convert_from(Scope& scope, size_t first) {
    for (scope.at = first; scope.at < scope.order->size(); ++scope.at) {
      const int index = (*scope.order)[scope.at];
      if (diagnostics_.size() >= most_diagnostics) return;
      if (++converted_ > most_conversions) {
        diagnostics_.push_back(
            refuse(codes::too_large, "the model has more than " + std::to_string(most_conversions) +
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

  // The outputs of a function's graph, or none where something is wrong.
  std::vector<Expr> to_end_of(Scope& scope, const std::vector<const NodeProto*>& nodes, const std::vector<int>& order) {
    try {
      convert_nodes(scope, nodes, order);
    } catch (Ended& ended) {
      return std::move(ended.results);
    }
    return diagnostics_.empty() ? scope.results(scope) : std::vector<Expr>();
  }

  void throw_what_was_said() const {
    if (!diagnostics_.empty()) throw DiagnosticError(Diagnostics{});
  }

  static void fail_outputs(Scope& scope, const NodeProto& node) {
    for (const std::string& name : node.output())
      if (!name.empty()) scope.values[name] = {.failed = true};
  }

  // Not one of a node in a function that this node calls, which has operands of its own.
  static bool is_at(const support::Place& place, const support::ModelNode& node) {
    const auto* at = std::get_if<support::ModelNode>(&place);
    return at && at->node == node.node && at->operator_type == node.operator_type;
  }

  // What the operands are and where they come from.
  static void add_notes(Diagnostic& d, const Scope& scope, const NodeProto& node) {
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

  // False: an input's node failed, and so this one cannot be converted.
  bool convert(Scope& scope, const NodeProto& node, const support::ModelNode& place) {
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
    Inside inside(*this, scope, node, place);
    NodeImport import(builder_, attributes, std::move(inputs), outputs, version, place, &inside);
    import.declare_ranks(&scope.ranks);
    import.name_inputs(&names);
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
      name_long_extents(scope, value);
      value.given_by = "the output of " + in_quotes(place.node);
      value.is_computed_once = is_computed_once && !has_graphs;
      scope.values[outputs[i]] = std::move(value);
    }
    if (see_ && !scope.around && !scope.given) see_(node, opset, scope.values);
    return true;
  }

  // ---- graphs inside nodes ----

  class Inside : public NestedGraphs {
   public:
    Inside(GraphImport& importer, Scope& around, const NodeProto& node, const support::ModelNode& place)
        : importer_(importer), around_(around), node_(node), place_(place) {}
    std::vector<GraphValue> convert(const GraphProto& graph, const std::string& name,
                                    std::vector<GraphValue> inputs) override {
      return importer_.convert_inside(around_, graph, place_, name, std::move(inputs));
    }
    std::vector<GraphValue> convert_inline(const GraphProto& graph, const std::string& name) override {
      return importer_.convert_branch(around_, graph, node_, place_, name, Scope::End::outer);
    }
    std::vector<GraphValue> convert_alone(const GraphProto& graph, const std::string& name) override {
      return importer_.convert_branch(around_, graph, node_, place_, name, Scope::End::alone);
    }
    std::vector<Expr> convert_to_end(const GraphProto& graph, const std::string& name) override {
      return importer_.convert_to_end(around_, graph, node_, place_, name);
    }
    void expect_end(const std::string& why) override { importer_.expect_end(around_, place_, why); }
    [[noreturn]] void end_with(std::vector<Expr> results) override { throw Ended{std::move(results)}; }
    GraphValue convert_again(const std::vector<std::string>& names, std::vector<GraphValue> values,
                             const std::string& result) override {
      return importer_.convert_again(around_, place_, names, std::move(values), result);
    }

   private:
    GraphImport& importer_;
    Scope& around_;
    const NodeProto& node_;
    const support::ModelNode& place_;
  };

  // The scope of nodes that see what is around them.
  static Scope inside(Scope& around) {
    Scope scope;
    scope.opsets = around.opsets;
    scope.given = around.given;
    scope.around = &around;
    scope.absent = around.absent;
    return scope;
  }

  // What a graph inside a node needs to be converted.
  struct Opened {
    Scope scope;
    NodeList list;
    std::vector<int> order;
  };
  Opened open(Scope& around, const GraphProto& graph, const support::ModelNode& place, const std::string& name) {
    Opened opened{inside(around), list_nodes(graph).value_or_throw(), {}};
    opened.scope.prefix = place.node + "/" + name + "/";
    opened.list.within = name + " of " + in_quotes(place.node) + ": ";
    opened.list.is_around = [&](const std::string& each) { return around.absent.count(each) || around.find(each); };
    opened.order = order_nodes(model_, opened.list).value_or_throw();
    add_initializers(opened.scope, opened.list, graph).value_or_throw();
    opened.scope.ranks = declared_ranks(graph);
    return opened;
  }

  std::vector<GraphValue> outputs_of(Scope& scope, const GraphProto& graph, const std::string& name) {
    std::vector<GraphValue> outputs;
    for (const auto& output : graph.output()) {
      GraphValue* value = scope.find(output.name());
      if (!value)
        throw DiagnosticError(refuse(codes::missing_value, name + " gives an input that its call leaves out"));
      outputs.push_back(*value);
    }
    return outputs;
  }

  std::vector<GraphValue> convert_inside(Scope& around, const GraphProto& graph, const support::ModelNode& place,
                                         const std::string& name, std::vector<GraphValue> inputs) {
    const ir::Origin origin = builder_.origin();
    Opened opened = open(around, graph, place, name);
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i].given_by = "the input of " + name;
      opened.scope.absent.erase(graph.input(static_cast<int>(i)).name());
      opened.scope.values[graph.input(static_cast<int>(i)).name()] = std::move(inputs[i]);
    }
    opened.scope.results = [&](Scope& self) {
      std::vector<Expr> results;
      for (GraphValue& output : outputs_of(self, graph, name)) results.push_back(tensor_of(builder_, output));
      return results;
    };
    std::vector<GraphValue> outputs;
    try {
      convert_nodes(opened.scope, opened.list.nodes, opened.order);
      throw_what_was_said();
      outputs = outputs_of(opened.scope, graph, name);
    } catch (Ended& ended) {
      for (Expr& result : ended.results) outputs.push_back({.tensor = std::move(result)});
    }
    builder_.set_origin(origin);
    return outputs;
  }

  std::vector<GraphValue> convert_branch(Scope& around, const GraphProto& graph, const NodeProto& node,
                                         const support::ModelNode& place, const std::string& name, Scope::End end) {
    const ir::Origin origin = builder_.origin();
    Opened opened = open(around, graph, place, name);
    opened.scope.end = end;
    opened.scope.outer = &around;
    opened.scope.bind = [&](Scope& self, Scope& outer) {
      std::vector<GraphValue> outputs = outputs_of(self, graph, name);
      for (size_t i = 0; i < outputs.size(); ++i) {
        outputs[i].given_by = "the output of " + in_quotes(place.node);
        outer.values[node.output(static_cast<int>(i))] = std::move(outputs[i]);
      }
    };
    convert_nodes(opened.scope, opened.list.nodes, opened.order);
    throw_what_was_said();
    builder_.set_origin(origin);
    return outputs_of(opened.scope, graph, name);
  }

  // The branch of a node, and from there on all nodes up to the end of the function's graph, whose outputs it gives.
  std::vector<Expr> convert_to_end(Scope& around, const GraphProto& graph, const NodeProto& node,
                                   const support::ModelNode& place, const std::string& name) {
    throw_what_was_said();
    if (++ends_ > most_ends)
      throw DiagnosticError(refuse(codes::too_large, "branches of different numbers of dimensions lead to more than " +
                                                         std::to_string(most_ends) + " ends of the graph"));
    std::deque<Scope> copies = copy_to_end(around);
    const ir::Origin origin = builder_.origin();
    std::vector<Expr> results;
    try {
      std::vector<GraphValue> outputs = convert_branch(copies.front(), graph, node, place, name, Scope::End::outer);
      for (size_t i = 0; i < outputs.size(); ++i)
        copies.front().values[node.output(static_cast<int>(i))] = std::move(outputs[i]);
      for (Scope& scope : copies) {
        convert_from(scope, scope.at + 1);
        throw_what_was_said();
        if (scope.end == Scope::End::outer) {
          scope.bind(scope, *scope.outer);
          continue;
        }
        results = scope.results(scope);
        if (!scope.around) check_declared_ranks(scope, results);
      }
    } catch (Ended& ended) {
      results = std::move(ended.results);
    } catch (DiagnosticError& error) {  // the other branch may be all right
      Diagnostics all = std::move(diagnostics_);
      diagnostics_.clear();
      all.insert(all.end(), error.diagnostics.begin(), error.diagnostics.end());
      builder_.set_origin(origin);
      throw DiagnosticError(std::move(all));
    }
    builder_.set_origin(origin);
    return results;
  }

  void expect_end(const Scope& scope, const support::ModelNode& place, const std::string& why) const {
    const Scope* at = &scope;
    while (at->end == Scope::End::outer) at = at->outer;
    if (at->end == Scope::End::alone) throw RanksDiffer{why};
    if (at->end == Scope::End::copy || see_)
      throw DiagnosticError(Diagnostic{.code = codes::unsupported,
                                       .place = place,
                                       .message = why + ", which only the conversion of a whole graph can follow"});
  }

  GraphValue convert_again(Scope& around, const support::ModelNode& place, const std::vector<std::string>& names,
                           std::vector<GraphValue> values, const std::string& result) {
    // What depends on the values, in order; then, from the result back, what it needs of that, or has not met yet.
    std::unordered_set<std::string> reached(names.begin(), names.end()), needed{result};
    const std::unordered_set<std::string> given = reached;
    for (const int index : *around.order) {
      const NodeProto& node = *(*around.nodes)[static_cast<size_t>(index)];
      bool reads = false;
      each_read(node, [&](const std::string& name) { reads = reads || reached.count(name); });
      if (reads) reached.insert(node.output().begin(), node.output().end());
    }
    std::vector<int> chosen;
    for (size_t k = around.order->size(); k-- > 0;) {
      const NodeProto& node = *(*around.nodes)[static_cast<size_t>((*around.order)[k])];
      const bool again = std::any_of(node.output().begin(), node.output().end(), [&](const std::string& name) {
        return needed.count(name) && !given.count(name) && (reached.count(name) || !around.find(name));
      });
      if (!again) continue;
      chosen.push_back((*around.order)[k]);
      each_read(node, [&](const std::string& name) { needed.insert(name); });
    }
    std::reverse(chosen.begin(), chosen.end());
    const ir::Origin origin = builder_.origin();
    Scope scope = inside(around);
    scope.end = Scope::End::copy;
    scope.ranks = around.ranks;
    scope.prefix = place.node + "/";
    for (size_t i = 0; i < names.size(); ++i) scope.values[names[i]] = std::move(values[i]);
    convert_nodes(scope, *around.nodes, chosen);
    throw_what_was_said();
    builder_.set_origin(origin);
    GraphValue* value = scope.find(result);
    if (!value || value->failed)
      throw DiagnosticError(refuse(codes::missing_value, "there is no value " + in_quotes(result) + " in the graph"));
    return *value;
  }

  // "a sequence", for what is no tensor.
  static std::string kind_of(const GraphValue& value) {
    return value.tensor && value.tensor->struct_info.is<relax::OptionalStructInfo>() ? "an optional" : "a sequence";
  }
  static bool is_tensor(const GraphValue& value) { return !value.tensor || relax::as_tensor(value.tensor); }

  static void check_counts(const OperatorRow& row, NodeImport& import) {
    const auto range = [](size_t least, size_t most, std::string_view noun) {
      std::string text = std::to_string(least);
      if (most == any_number)
        text += " or more";
      else if (most != least)
        text += " to " + std::to_string(most);
      return text + " " + std::string(noun) + (most == 1 ? "" : "s");
    };
    const std::string name(row.name);
    if (import.input_count() < row.least_inputs || import.input_count() > row.most_inputs)
      import.fail(codes::wrong_node, name + " takes " + range(row.least_inputs, row.most_inputs, "input") +
                                         ", but the node has " + std::to_string(import.input_count()));
    for (size_t i = 0; i < import.input_count(); ++i)
      if (!row.takes_any && import.has(i) && !is_tensor(import.value(i)))
        import.fail(codes::wrong_node, "the input " + std::to_string(i) + " is " + kind_of(import.value(i)) + ", but " +
                                           name + " takes tensors");
    for (size_t i = 0; i < row.least_inputs; ++i)
      if (!import.has(i))
        import.fail(codes::wrong_node, "the input " + std::to_string(i) + " of " + name + " is missing");
    if (import.output_count() < 1 || import.output_count() > row.most_outputs)
      import.fail(codes::wrong_node, name + " gives " + range(1, row.most_outputs, "output") + ", but the node has " +
                                         std::to_string(import.output_count()));
  }

  // Refuses what no memory holds, and shapes that have grown past use.
  static void check_shape(const NodeImport& import, const GraphValue& value) {
    const auto* info = relax::as_tensor(value.tensor);
    if (!value.tensor || !is_tensor(value)) return;
    if (!info || !info->shape) import.fail(codes::unsupported, "the shape of the result cannot be known");
    if (info->ndim > highest_rank)
      import.fail(codes::too_large, "the result would have " + std::to_string(info->ndim) + " dimensions; " +
                                        std::to_string(highest_rank) + " is the most");
    std::vector<int64_t> known;
    for (const ir::Expr& extent : *info->shape) {
      if (!is_small(extent))
        import.fail(codes::too_large, "the shape of the result has grown into an expression of over " +
                                          std::to_string(largest_expression) + " terms");
      const auto constant = ir::as_int(extent);
      if (constant && *constant < 0)
        import.fail(codes::wrong_shape, "the result would be " + relax::text_of(*info) + ", with a negative dimension");
      if (constant) known.push_back(*constant);
    }
    if (!checked_bytes(known, info->dtype))
      import.fail(codes::wrong_shape, "the result would be " + relax::text_of(*info) + ", more than any memory holds");
  }

  // Long extents become symbols: what comes after would make them longer still.
  void name_long_extents(Scope& scope, GraphValue& value) {
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
      value.tensor = builder_.match_cast(value.tensor,
                                         relax::tensor_info(std::move(shape), relax::as_tensor(value.tensor)->dtype));
  }

  // ---- model-local functions ----

  bool call(Scope& outer, const NodeProto& node, const FunctionProto& function, const std::vector<GraphValue*>& inputs,
            NodeAttributes& given, const support::ModelNode& place) {
    const auto wrong = [&](support::Code code, const std::string& message) {
      throw DiagnosticError(Diagnostic{
          .code = code, .place = place, .message = "the function " + in_quotes(function.name()) + " " + message});
    };
    if (static_cast<int>(inputs.size()) > function.input_size())
      wrong(codes::wrong_node, "takes " + std::to_string(function.input_size()) + " inputs, but the node has " +
                                   std::to_string(inputs.size()));
    if (node.output_size() > function.output_size())
      wrong(codes::wrong_node, "gives " + std::to_string(function.output_size()) + " outputs, but the node has " +
                                   std::to_string(node.output_size()));

    for (const auto& attribute : function.attribute_proto()) given.add_default(attribute);
    Scope inner;
    inner.opsets = opsets_of(function, outer.opsets);
    inner.given = &given;
    inner.prefix = place.node + "/";
    NodeList list;
    list.within = "the function " + in_quotes(function.name()) + ": ";
    std::unordered_set<std::string>& absent = inner.absent;
    for (int i = 0; i < function.input_size(); ++i) {
      const std::string& name = function.input(i);
      const bool is_there = static_cast<size_t>(i) < inputs.size() && inputs[static_cast<size_t>(i)];
      if (is_there)
        inner.values[name] = *inputs[static_cast<size_t>(i)];
      else
        absent.insert(name);
      list.given.insert(name);
    }
    for (const NodeProto& each : function.node()) list.nodes.push_back(&each);
    list.outputs.assign(function.output().begin(), function.output().end());
    const std::vector<int> order = order_nodes(model_, list).value_or_throw();
    inner.end = Scope::End::outer;
    inner.outer = &outer;
    inner.bind = [&](Scope& self, Scope& caller) {
      for (int i = 0; i < node.output_size(); ++i) {
        if (node.output(i).empty()) continue;
        const auto it = self.values.find(function.output(i));
        if (it == self.values.end()) wrong(codes::missing_value, "needs an input that the node leaves out");
        caller.values[node.output(i)] = it->second;
      }
    };
    // An input that the call leaves out has no value in the nodes that read it.
    convert_nodes(inner, list.nodes, order);
    inner.bind(inner, outer);
    return true;
  }

  // ---- results ----

  std::vector<Expr> results(Scope& scope) {
    std::vector<Expr> made;
    for (const auto& output : graph_.output()) made.push_back(tensor_of(builder_, scope.values.at(output.name())));
    return made;
  }

  // An end of branches of different ranks is the wrong one where the graph declares another rank.
  void check_declared_ranks(const Scope& scope, const std::vector<Expr>& results) const {
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

  void finish(const std::vector<Expr>& made) {
    std::vector<Expr> results;
    for (const auto& output : graph_.output())
      results.push_back(builder_.emit_output(made[results.size()], identifier(output.name())));
    builder_.end_block();
    builder_.end_function(results.size() == 1 ? results[0] : Expr(ir::make<relax::Tuple>(results)));
  }

  const Model& model_;
  const ImportOptions& options_;
  const SeeNode see_;
  LocalFunctions functions_;
  const GraphProto& graph_;
  relax::BlockBuilder builder_;
  Diagnostics diagnostics_;
  int64_t converted_ = 0;
  int ends_ = 0;  // of branches of different ranks
  bool strict_ranks_ = false;
};

// A graph is converted again for each length that an input may have only where that takes no time to speak of.
constexpr int64_t most_tried_conversions = 5'000;

// `options` become those with which the graph is converted.
Result<ir::IRModule> convert(const Model& model, ImportOptions& options) {
  GraphImport import(model, options, {});
  Result<ir::IRModule> module = support::catch_diagnostics([&] { return import.run(); });
  if (module.ok() || import.converted() > most_tried_conversions) return module;
  Diagnostics refused = module.diagnostics();
  auto deduced = deduce_length(model.proto->graph(), options, refused,
                               [&](const ImportOptions& tried) { return GraphImport(model, tried, {}).fits(); });
  if (!deduced) return refused;
  options = std::move(*deduced);
  return GraphImport(model, options, {}).run();
}

}  // namespace

Result<ir::IRModule> import_graph(const Model& model, const ImportOptions& options, const SeeNode& see) {
  return support::catch_diagnostics([&]() -> Result<ir::IRModule> {
    ImportOptions settled = options;
    ir::IRModule module = TRY(convert(model, settled));
    return see ? GraphImport(model, settled, see).run() : std::move(module);
  });
}

}  // namespace lathe::onnx
