#include "interchange/onnx/graph/inside.h"

#include <deque>

#include "interchange/onnx/codes.h"
#include "interchange/onnx/read/names.h"
#include "onnx_schema.pb.h"

namespace lathe::onnx {

using schema::GraphProto;
using schema::NodeProto;
using support::Diagnostic;
using support::DiagnosticError;
using support::Diagnostics;

namespace {

// Copies of what comes after branches of different ranks; each such branch may have more inside.
constexpr int most_ends = 64;

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

}  // namespace

GraphImport::Opened GraphImport::open(Scope& around, const GraphProto& graph, const support::ModelNode& place,
                                      const std::string& name) {
  Opened opened{onnx::inside(around), list_nodes(model_, graph).value_or_throw(), {}};
  opened.scope.prefix = place.node + "/" + name + "/";
  opened.list.within = name + " of " + in_quotes(place.node) + ": ";
  opened.list.is_around = [&](const std::string& each) { return around.absent.count(each) || around.find(each); };
  opened.order = order_nodes(model_, opened.list).value_or_throw();
  add_initializers(model_, opened.list, graph, opened.scope.values).value_or_throw();
  opened.scope.ranks = declared_ranks(graph);
  return opened;
}

std::vector<GraphValue> GraphImport::outputs_of(Scope& scope, const GraphProto& graph, const std::string& name) {
  std::vector<GraphValue> outputs;
  for (const auto& output : graph.output()) {
    GraphValue* value = scope.find(output.name());
    if (!value) throw DiagnosticError(refuse(codes::missing_value, name + " gives an input that its call leaves out"));
    outputs.push_back(*value);
  }
  return outputs;
}

std::vector<GraphValue> GraphImport::convert_inside(Scope& around, const GraphProto& graph,
                                                    const support::ModelNode& place, const std::string& name,
                                                    std::vector<GraphValue> inputs) {
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

std::vector<GraphValue> GraphImport::convert_branch(Scope& around, const GraphProto& graph, const NodeProto& node,
                                                    const support::ModelNode& place, const std::string& name,
                                                    Scope::End end) {
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

std::vector<Expr> GraphImport::convert_to_end(Scope& around, const GraphProto& graph, const NodeProto& node,
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

void GraphImport::expect_end(const Scope& scope, const support::ModelNode& place, const std::string& why) const {
  const Scope* at = &scope;
  while (at->end == Scope::End::outer) at = at->outer;
  if (at->end == Scope::End::alone) throw RanksDiffer{why};
  if (at->end == Scope::End::copy || see_)
    throw DiagnosticError(Diagnostic{.code = codes::unsupported,
                                     .place = place,
                                     .message = why + ", which only the conversion of a whole graph can follow"});
}

GraphValue GraphImport::convert_again(Scope& around, const support::ModelNode& place,
                                      const std::vector<std::string>& names, std::vector<GraphValue> values,
                                      const std::string& result) {
  const std::vector<int> chosen = nodes_again(around, names, result);
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

}  // namespace lathe::onnx
