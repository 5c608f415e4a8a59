// Checks of a graph as a whole before its nodes are converted: names, order, opsets, operators.
#pragma once

#include "interchange/onnx/read/model.h"

namespace lathe::onnx {

// At most this many diagnostics are given by one stage, except that unknown operators are all listed.
inline constexpr size_t most_diagnostics = 4;

// "" for the default domain, which has two names.
std::string domain_of(const std::string& domain);

// How diagnostics call a node: its name, or "#12" by position.
std::string node_name(const schema::NodeProto& node, int index);

// The opsets a model or function imports, by domain.
using Opsets = std::map<std::string, int64_t>;
support::Result<Opsets> read_opsets(const Model& model);
Opsets opsets_of(const schema::FunctionProto& function, const Opsets& otherwise);

// The functions defined in the model itself, by domain, name and overload.
class LocalFunctions {
 public:
  explicit LocalFunctions(const schema::ModelProto& model);
  const schema::FunctionProto* find(const schema::NodeProto& node) const;

 private:
  std::map<std::array<std::string, 3>, const schema::FunctionProto*> functions_;
};

// Diagnostics for every operator of the graph, and of the functions it calls, that Lathe does not know: one each.
support::Status check_operators(const Model& model, const LocalFunctions& functions, const Opsets& opsets);

// Refuses functions that call themselves or one another too deep, and those that expand to too many nodes, before any
// is converted: a small file can hold calls that double thirty times.
support::Status check_expansion(const Model& model, const LocalFunctions& functions);

// A list of nodes, and the names that are there before them.
struct NodeList {
  std::vector<const schema::NodeProto*> nodes;
  std::unordered_set<std::string> given;  // inputs and initializers
  std::vector<std::string> outputs;
  std::string within;  // "", or "the function 'f': "
  // Whether a graph around this one gives the value; empty: there is none.
  std::function<bool(const std::string&)> is_around;
};
// The names that a node reads: its inputs, and what graphs inside it take from around them. Repeats are left in.
void each_read(const schema::NodeProto& node, const std::function<void(const std::string&)>& read);
// The nodes' indices in an order in which each comes after those it reads; else diagnostics that name duplicates,
// missing values or a cycle.
support::Result<std::vector<int>> order_nodes(const Model& model, const NodeList& list);

}  // namespace lathe::onnx
