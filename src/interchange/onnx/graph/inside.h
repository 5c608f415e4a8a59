// What a node asks for the graphs that it holds. Private to this folder.
#pragma once

#include "interchange/onnx/graph/graph_import.h"

namespace lathe::onnx {

class GraphImport::Inside : public NestedGraphs {
 public:
  Inside(GraphImport& importer, Scope& around, const schema::NodeProto& node, const support::ModelNode& place)
      : importer_(importer), around_(around), node_(node), place_(place) {}
  std::vector<GraphValue> convert(const schema::GraphProto& graph, const std::string& name,
                                  std::vector<GraphValue> inputs) override {
    return importer_.convert_inside(around_, graph, place_, name, std::move(inputs));
  }
  std::vector<GraphValue> convert_inline(const schema::GraphProto& graph, const std::string& name) override {
    return importer_.convert_branch(around_, graph, node_, place_, name, Scope::End::outer);
  }
  std::vector<GraphValue> convert_alone(const schema::GraphProto& graph, const std::string& name) override {
    return importer_.convert_branch(around_, graph, node_, place_, name, Scope::End::alone);
  }
  std::vector<relax::Expr> convert_to_end(const schema::GraphProto& graph, const std::string& name) override {
    return importer_.convert_to_end(around_, graph, node_, place_, name);
  }
  void expect_end(const std::string& why) override { importer_.expect_end(around_, place_, why); }
  [[noreturn]] void end_with(std::vector<relax::Expr> results) override { throw Ended{std::move(results)}; }
  GraphValue convert_again(const std::vector<std::string>& names, std::vector<GraphValue> values,
                           const std::string& result) override {
    return importer_.convert_again(around_, place_, names, std::move(values), result);
  }

 private:
  GraphImport& importer_;
  Scope& around_;
  const schema::NodeProto& node_;
  const support::ModelNode& place_;
};

}  // namespace lathe::onnx
