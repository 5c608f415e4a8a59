#include "interchange/onnx/order.h"

#include <queue>

#include "interchange/onnx/codes.h"
#include "interchange/onnx/read/names.h"
#include "onnx_schema.pb.h"

namespace lathe::onnx {

using schema::NodeProto;
using support::Diagnostic;
using support::Diagnostics;
using support::Result;

std::string node_name(const NodeProto& node, int index) {
  return node.name().empty() ? "#" + std::to_string(index) : printable(node.name());
}

void each_read(const NodeProto& node, const std::function<void(const std::string&)>& read) {
  for (const std::string& name : node.input())
    if (!name.empty()) read(name);
  for (const auto& attribute : node.attribute()) {
    if (!attribute.has_g()) continue;
    const schema::GraphProto& graph = attribute.g();
    std::unordered_set<std::string> own;
    for (const auto& input : graph.input()) own.insert(input.name());
    for (const auto& tensor : graph.initializer()) own.insert(tensor.name());
    for (const auto& tensor : graph.sparse_initializer()) own.insert(tensor.values().name());
    for (const NodeProto& inner : graph.node()) own.insert(inner.output().begin(), inner.output().end());
    const auto outside = [&](const std::string& name) {
      if (!own.count(name)) read(name);
    };
    for (const NodeProto& inner : graph.node()) each_read(inner, outside);
    for (const auto& output : graph.output()) outside(output.name());
  }
}

namespace {

class Ordering {
 public:
  Ordering(const Model& model, const NodeList& list) : model_(model), list_(list) {}

  Result<std::vector<int>> run() {
    find_producers();
    find_missing();
    if (!diagnostics_.empty()) return std::move(diagnostics_);
    return sort();
  }

 private:
  support::Place place(int index) const {
    const NodeProto& node = *list_.nodes[static_cast<size_t>(index)];
    return support::ModelNode{model_.name, node_name(node, index), printable(node.op_type())};
  }
  void add(support::Code code, support::Place place, std::string message) {
    if (diagnostics_.size() < most_diagnostics)
      diagnostics_.push_back({.code = code, .place = std::move(place), .message = list_.within + std::move(message)});
  }

  void find_producers() {
    for (int i = 0; i < static_cast<int>(list_.nodes.size()); ++i)
      for (const std::string& name : list_.nodes[static_cast<size_t>(i)]->output()) {
        if (name.empty()) continue;
        if (list_.given.count(name))
          add(codes::duplicate_name, place(i),
              "gives the value " + in_quotes(name) + ", which is an input or initializer of the graph already");
        else if (const auto [it, fresh] = producers_.try_emplace(name, i); !fresh)
          add(codes::duplicate_name, place(i),
              "gives the value " + in_quotes(name) + ", which the node " +
                  in_quotes(node_name(*list_.nodes[static_cast<size_t>(it->second)], it->second)) + " gives already");
      }
  }

  void find_missing() {
    std::unordered_set<std::string> reported;
    const auto is_missing = [&](const std::string& name) {
      return !list_.given.count(name) && !producers_.count(name) && !(list_.is_around && list_.is_around(name));
    };
    for (int i = 0; i < static_cast<int>(list_.nodes.size()); ++i)
      each_read(*list_.nodes[static_cast<size_t>(i)], [&](const std::string& name) {
        if (is_missing(name) && reported.insert(name).second)
          add(codes::missing_value, place(i),
              "reads " + in_quotes(name) + ", which no input, initializer or node of the graph gives");
      });
    for (const std::string& name : list_.outputs)
      if (is_missing(name))
        add(codes::missing_value, model_.place(),
            "the output " + in_quotes(name) + " is given by no input, initializer or node of the graph");
  }

  // Kahn's algorithm; among nodes that are ready the first in the file goes first.
  Result<std::vector<int>> sort() {
    const size_t count = list_.nodes.size();
    std::vector<int> waits(count, 0);
    std::vector<std::vector<int>> readers(count);
    for (size_t i = 0; i < count; ++i)
      each_read(*list_.nodes[i], [&](const std::string& name) {
        if (const auto it = producers_.find(name); it != producers_.end()) {
          readers[static_cast<size_t>(it->second)].push_back(static_cast<int>(i));
          ++waits[i];
        }
      });
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (size_t i = 0; i < count; ++i)
      if (waits[i] == 0) ready.push(static_cast<int>(i));
    std::vector<int> order;
    while (!ready.empty()) {
      const int node = ready.top();
      ready.pop();
      order.push_back(node);
      for (const int reader : readers[static_cast<size_t>(node)])
        if (--waits[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
    if (order.size() == count) return order;
    return describe_cycle(waits);
  }

  // Every node that still waits has a producer that still waits: going back along them must meet a node again.
  Diagnostic describe_cycle(const std::vector<int>& waits) const {
    const auto producer_of = [&](int i) {
      std::optional<std::pair<int, std::string>> found;
      each_read(*list_.nodes[static_cast<size_t>(i)], [&](const std::string& name) {
        const auto it = producers_.find(name);
        if (!found && it != producers_.end() && waits[static_cast<size_t>(it->second)] > 0)
          found = std::pair(it->second, name);
      });
      support::require(found.has_value(), "a node waits for nothing");
      return *found;
    };
    int at = static_cast<int>(std::find_if(waits.begin(), waits.end(), [](int w) { return w > 0; }) - waits.begin());
    std::unordered_set<int> seen;
    while (seen.insert(at).second) at = producer_of(at).first;
    const int start = at;
    std::string text;
    int length = 0;
    do {
      const auto [before, name] = producer_of(at);
      if (++length <= 4)
        text += (text.empty() ? "" : ", which reads ") + in_quotes(name) + " of node " +
                in_quotes(node_name(*list_.nodes[static_cast<size_t>(before)], before));
      at = before;
    } while (at != start);
    if (length > 4) text += ", and so on through " + std::to_string(length) + " nodes";
    return {.code = codes::cycle, .place = place(start), .message = list_.within + "is in a cycle: it reads " + text};
  }

  const Model& model_;
  const NodeList& list_;
  std::unordered_map<std::string, int> producers_;
  Diagnostics diagnostics_;
};

}  // namespace

Result<std::vector<int>> order_nodes(const Model& model, const NodeList& list) { return Ordering(model, list).run(); }

}  // namespace lathe::onnx
