// GraphImport: a model's graph, and what its nodes hold and call, as one relax function. Private to this folder.
#pragma once

#include "interchange/onnx/graph/names.h"
#include "interchange/onnx/graph/scope.h"
#include "interchange/onnx/node.h"

namespace lathe::onnx {

// Thrown to where a function's graph is converted, with its outputs: its nodes were converted inside branches.
struct Ended {
  std::vector<relax::Expr> results;
};

class GraphImport {
 public:
  // What is passed outlives it.
  GraphImport(const Model& model, const ImportOptions& options, SeeNode see);

  // How many nodes were converted.
  int64_t converted() const { return converted_; }

  // Whether it can be converted, to results of the ranks that the graph declares.
  bool fits();
  support::Result<ir::IRModule> run();

 private:
  class Inside;
  // What a graph inside a node needs to be converted.
  struct Opened {
    Scope scope;
    NodeList list;
    std::vector<int> order;
  };

  support::Diagnostic refuse(support::Code code, std::string message) const {
    return onnx::refuse(model_, code, std::move(message));
  }

  // ---- nodes ----

  void convert_nodes(Scope& scope, const std::vector<const schema::NodeProto*>& nodes, const std::vector<int>& order);

  // The scope's nodes from that place of their order on.
  void convert_from(Scope& scope, size_t first);

  // The outputs of a function's graph, or none where something is wrong.
  std::vector<relax::Expr> to_end_of(Scope& scope, const std::vector<const schema::NodeProto*>& nodes,
                                     const std::vector<int>& order);

  void throw_what_was_said() const;
  // False: an input's node failed, and so this one cannot be converted.
  bool convert(Scope& scope, const schema::NodeProto& node, const support::ModelNode& place);

  // ---- graphs inside nodes ----

  Opened open(Scope& around, const schema::GraphProto& graph, const support::ModelNode& place, const std::string& name);
  std::vector<GraphValue> outputs_of(Scope& scope, const schema::GraphProto& graph, const std::string& name);
  std::vector<GraphValue> convert_inside(Scope& around, const schema::GraphProto& graph,
                                         const support::ModelNode& place, const std::string& name,
                                         std::vector<GraphValue> inputs);
  std::vector<GraphValue> convert_branch(Scope& around, const schema::GraphProto& graph, const schema::NodeProto& node,
                                         const support::ModelNode& place, const std::string& name, Scope::End end);
  // The branch of a node, and from there on all nodes up to the end of the function's graph, whose outputs it gives.
  std::vector<relax::Expr> convert_to_end(Scope& around, const schema::GraphProto& graph, const schema::NodeProto& node,
                                          const support::ModelNode& place, const std::string& name);
  void expect_end(const Scope& scope, const support::ModelNode& place, const std::string& why) const;
  GraphValue convert_again(Scope& around, const support::ModelNode& place, const std::vector<std::string>& names,
                           std::vector<GraphValue> values, const std::string& result);

  // ---- model-local functions ----

  bool call(Scope& outer, const schema::NodeProto& node, const schema::FunctionProto& function,
            const std::vector<GraphValue*>& inputs, NodeAttributes& given, const support::ModelNode& place);

  // ---- results ----

  std::vector<relax::Expr> results(Scope& scope);
  // An end of branches of different ranks is the wrong one where the graph declares another rank.
  void check_declared_ranks(const Scope& scope, const std::vector<relax::Expr>& results) const;
  void finish(const std::vector<relax::Expr>& made);

  const Model& model_;
  const ImportOptions& options_;
  const SeeNode see_;
  LocalFunctions functions_;
  const schema::GraphProto& graph_;
  relax::BlockBuilder builder_;
  SymbolBounds bounds_;
  support::Diagnostics diagnostics_;
  int64_t converted_ = 0;
  int ends_ = 0;  // of branches of different ranks
  bool strict_ranks_ = false;
};

}  // namespace lathe::onnx
