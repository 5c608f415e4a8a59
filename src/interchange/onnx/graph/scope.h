// The names that are in view where a node is converted. Private to this folder.
#pragma once

#include "interchange/onnx/attributes.h"
#include "interchange/onnx/graph/graph.h"
#include "interchange/onnx/known_sizes.h"
#include "interchange/onnx/order.h"
#include "relax/block_builder.h"

namespace lathe::onnx {

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
  SameSizes same_sizes;
  const std::vector<const schema::NodeProto*>* nodes = nullptr;
  const std::vector<int>* order = nullptr;  // of the nodes
  size_t at = 0;                            // in the order: the node that is converted

  // What comes after the last node: the end of a function (the model's, a loop's body), more of the scope that this
  // graph's node stands in, or, for now, nothing that could be said (a branch by itself; a copy for a gradient).
  enum class End { function, outer, alone, copy };
  End end = End::function;
  std::function<std::vector<relax::Expr>(Scope&)> results;  // of a function: its outputs
  Scope* outer = nullptr;
  std::function<void(Scope& self, Scope& outer)> bind;  // makes the graph's outputs those of its node

  // The value of that name, or null. One from around is copied: what the inside learns of it holds inside only.
  GraphValue* find(const std::string& name);
};

// The scope of nodes that see what is around them.
Scope inside(Scope& around);

// How many dimensions the graph says that its values have, and those whose operators keep the number.
std::unordered_map<std::string, int64_t> declared_ranks(const schema::GraphProto& graph);

// Long extents become symbols: what comes after would make them longer still.
void name_long_extents(relax::BlockBuilder& builder, Scope& scope, GraphValue& value);

// Which nodes of the scope to convert again for `result` where these names have other values: those that depend on
// them, and those that it needs and that have not been met; in order.
std::vector<int> nodes_again(Scope& scope, const std::vector<std::string>& names, const std::string& result);

}  // namespace lathe::onnx
