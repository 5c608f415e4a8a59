// Which operators a model uses, and whether they are known: opsets, the tables of operators, model-local functions.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/import.h"
#include "interchange/onnx/node.h"
#include "interchange/onnx/operators/tables.h"
#include "interchange/onnx/order.h"
#include "interchange/onnx/read/names.h"
#include "onnx_schema.pb.h"

namespace lathe::onnx {

using schema::FunctionProto;
using schema::NodeProto;
using support::Diagnostic;
using support::Diagnostics;
using support::Result;
using support::Status;

const OperatorRow* find_operator(std::string_view domain, std::string_view name) {
  using Key = std::pair<std::string_view, std::string_view>;
  static const std::map<Key, const OperatorRow*> rows = [] {
    std::map<Key, const OperatorRow*> all;
    for (const auto table : operators::tables())
      for (const OperatorRow& row : table) all[{row.domain, row.name}] = &row;
    return all;
  }();
  const auto it = rows.find({domain, name});
  return it == rows.end() ? nullptr : it->second;
}

std::string domain_of(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

namespace {

bool is_known_domain(std::string_view domain) {
  const auto tables = operators::tables();
  return std::any_of(tables.begin(), tables.end(), [&](const auto& table) {
    return std::any_of(table.begin(), table.end(), [&](const OperatorRow& row) { return row.domain == domain; });
  });
}

}  // namespace

Result<Opsets> read_opsets(const Model& model) {
  Opsets opsets;
  for (const auto& entry : model.proto->opset_import()) opsets[domain_of(entry.domain())] = entry.version();
  const auto refuse = [&](std::string message) {
    return Diagnostic{.code = codes::unsupported_opset, .place = model.place(), .message = std::move(message)};
  };
  const auto own = opsets.find("");
  // A model may use its own functions only, which import what they need, or operators of other domains.
  if (own == opsets.end()) {
    const bool has_others =
        std::any_of(opsets.begin(), opsets.end(), [](const auto& entry) { return is_known_domain(entry.first); });
    if (has_others || (!model.proto->functions().empty() && !opsets.empty())) return opsets;
    return refuse("the model imports no opset of ONNX's own operators, so their meaning is not fixed");
  }
  if (own->second < oldest_opset || own->second > newest_opset)
    return refuse("the model imports opset " + std::to_string(own->second) + "; Lathe reads opsets " +
                  std::to_string(oldest_opset) + " to " + std::to_string(newest_opset));
  return opsets;
}

Opsets opsets_of(const FunctionProto& function, const Opsets& otherwise) {
  Opsets opsets = otherwise;
  for (const auto& entry : function.opset_import()) opsets[domain_of(entry.domain())] = entry.version();
  return opsets;
}

LocalFunctions::LocalFunctions(const schema::ModelProto& model) {
  for (const FunctionProto& function : model.functions())
    functions_.try_emplace({domain_of(function.domain()), function.name(), function.overload()}, &function);
}

const FunctionProto* LocalFunctions::find(const NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto it = functions_.find({domain_of(node.domain()), node.op_type(), node.overload()});
  return it == functions_.end() ? nullptr : it->second;
}

namespace {

// Opsets of domains beside ONNX's own, in which what Lathe has of them did not change.
constexpr int64_t newest_of_other_domains = 5;

class OperatorCheck {
 public:
  OperatorCheck(const Model& model, const LocalFunctions& functions) : model_(model), functions_(functions) {}

  // The graph's nodes and those of every function called, each function once.
  void run(const Opsets& opsets) {
    visit(model_.proto->graph().node(), opsets);
    while (!called_.empty()) {
      const FunctionProto* function = called_.back();
      called_.pop_back();
      visit(function->node(), opsets_of(*function, opsets));
    }
  }

  Status result() {
    Diagnostics all;
    for (auto& [key, unknown] : unknown_) {
      std::string message = std::move(unknown.message);
      if (unknown.count > 1) message += " (" + std::to_string(unknown.count) + " nodes use it)";
      all.push_back({.code = unknown.code, .place = unknown.place, .message = std::move(message)});
    }
    if (!all.empty()) return all;
    return support::success();
  }

 private:
  void visit(const google::protobuf::RepeatedPtrField<NodeProto>& nodes, const Opsets& opsets) {
    int index = 0;
    for (const NodeProto& node : nodes) {
      const FunctionProto* function = functions_.find(node);
      for (const auto& attribute : node.attribute())
        if (attribute.has_g()) visit(attribute.g().node(), opsets);
      if (!function)
        check(node, index, opsets);
      else if (visited_.insert(function).second)
        called_.push_back(function);
      ++index;
    }
  }

  void check(const NodeProto& node, int index, const Opsets& opsets) {
    const std::string domain = domain_of(node.domain());
    const OperatorRow* row = find_operator(domain, node.op_type());
    const auto opset = opsets.find(domain);
    const bool has_opset = opset != opsets.end();
    const int64_t newest = domain.empty() ? newest_opset : newest_of_other_domains;
    if (row && has_opset && opset->second >= row->versions.front() && opset->second <= newest) return;
    const auto [it, fresh] = unknown_.try_emplace(std::pair(domain, node.op_type()));
    ++it->second.count;
    if (!fresh) return;
    it->second.place = support::ModelNode{model_.name, node_name(node, index), printable(node.op_type())};
    it->second.code = codes::unknown_operator;
    std::string& message = it->second.message;
    if (node.op_type().empty()) {
      message = "the node names no operator";
    } else if (!row) {
      message = "the operator " + in_quotes(node.op_type()) +
                (domain.empty() ? "" : " of the domain " + in_quotes(domain)) + " is not one that Lathe knows";
    } else if (!has_opset) {
      message = "the operator " + in_quotes(node.op_type()) + " is used without importing an opset that has it";
    } else {
      it->second.code = codes::unsupported_opset;
      message = "the operator " + in_quotes(node.op_type()) + " is there in opsets " +
                std::to_string(row->versions.front()) + " to " + std::to_string(newest) + ", but opset " +
                std::to_string(opset->second) + " is imported";
    }
  }

  struct Unknown {
    support::Code code;
    support::Place place;
    std::string message;
    int64_t count = 0;
  };
  const Model& model_;
  const LocalFunctions& functions_;
  std::map<std::pair<std::string, std::string>, Unknown> unknown_;
  std::unordered_set<const FunctionProto*> visited_;
  std::vector<const FunctionProto*> called_;
};

// Functions inside each other; nodes in all, calls of functions expanded.
constexpr int64_t deepest_call = 32;
constexpr int64_t most_nodes = 1'000'000;

class ExpansionCheck {
 public:
  ExpansionCheck(const Model& model, const LocalFunctions& functions) : model_(model), functions_(functions) {}

  // A list of nodes with its calls expanded.
  struct Size {
    int64_t nodes = 0, depth = 0;
  };
  // `above`: the calls of functions around the list.
  Size of(const google::protobuf::RepeatedPtrField<NodeProto>& nodes, int64_t above) {
    Size size;
    int index = 0;
    for (const NodeProto& node : nodes) {
      ++size.nodes;
      if (const FunctionProto* function = functions_.find(node)) {
        const support::Place place = support::ModelNode{model_.name, node_name(node, index), printable(node.op_type())};
        const Size inner = of(*function, above + 1, place);
        size.nodes += inner.nodes;
        size.depth = std::max(size.depth, inner.depth + 1);
      }
      for (const auto& attribute : node.attribute()) {
        if (!attribute.has_g()) continue;
        const support::Place place = support::ModelNode{model_.name, node_name(node, index), printable(node.op_type())};
        if (above >= deepest_call)
          throw support::DiagnosticError(Diagnostic{
              .code = codes::too_deep,
              .place = place,
              .message = "graphs are more than " + std::to_string(deepest_call) + " deep inside each other"});
        const Size inner = of(attribute.g().node(), above + 1);
        size.nodes += inner.nodes;
        size.depth = std::max(size.depth, inner.depth + 1);
      }
      if (size.nodes > most_nodes)
        throw support::DiagnosticError(Diagnostic{.code = codes::too_large,
                                                  .place = model_.place(),
                                                  .message = "the model has more than " + std::to_string(most_nodes) +
                                                             " nodes once its functions are expanded"});
      ++index;
    }
    return size;
  }

 private:
  // Each function is counted once. One that calls itself has no size yet when it is met again, and gets too deep.
  Size of(const FunctionProto& function, int64_t above, const support::Place& place) {
    const auto known = sizes_.find(&function);
    if (above + (known == sizes_.end() ? 0 : known->second.depth) > deepest_call)
      throw support::DiagnosticError(Diagnostic{.code = codes::too_deep,
                                                .place = place,
                                                .message = "the function " + in_quotes(function.name()) +
                                                           " calls functions more than " +
                                                           std::to_string(deepest_call) + " deep, or calls itself"});
    if (known != sizes_.end()) return known->second;
    return sizes_[&function] = of(function.node(), above);
  }

  const Model& model_;
  const LocalFunctions& functions_;
  std::unordered_map<const FunctionProto*, Size> sizes_;
};

}  // namespace

Status check_expansion(const Model& model, const LocalFunctions& functions) {
  try {
    ExpansionCheck(model, functions).of(model.proto->graph().node(), 0);
  } catch (const support::DiagnosticError& error) {
    return error.diagnostics;
  }
  return support::success();
}

Status check_operators(const Model& model, const LocalFunctions& functions, const Opsets& opsets) {
  OperatorCheck check(model, functions);
  check.run(opsets);
  return check.result();
}

}  // namespace lathe::onnx
