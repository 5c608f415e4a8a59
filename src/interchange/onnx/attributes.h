// The attributes of one node, read by name and type. What is never asked for is reported: an unknown attribute means
// that the model wants something which the compiler would silently leave out.
#pragma once

#include <unordered_map>

#include "interchange/onnx/read/model.h"

namespace lathe::onnx {

class NodeAttributes {
 public:
  // `given` (may be null): the attributes of the call of a model-local function, for those that refer to them by name.
  NodeAttributes(const Model& model, const schema::NodeProto& node, const NodeAttributes* given, support::Place place);

  bool has(std::string_view name) const { return find(name) != nullptr; }

  // Each marks the attribute as known, and throws a DiagnosticError when it is of another type.
  int64_t integer(std::string_view name, int64_t otherwise);
  int64_t integer(std::string_view name);  // required
  // 0 or 1.
  bool flag(std::string_view name, bool otherwise);
  double number(std::string_view name, double otherwise);
  std::string text(std::string_view name, std::string_view otherwise);
  // One of the words.
  std::string word(std::string_view name, std::initializer_list<std::string_view> words);
  std::optional<std::vector<int64_t>> integers(std::string_view name);
  std::optional<std::vector<float>> numbers(std::string_view name);
  std::optional<std::vector<std::string>> texts(std::string_view name);
  ir::TensorData tensor(std::string_view name);            // null when absent
  std::optional<Strings> strings(std::string_view name);   // a tensor of them; nothing where it holds numbers
  ir::TensorData sparse_tensor(std::string_view name);     // null when absent
  const schema::GraphProto& graph(std::string_view name);  // required
  const schema::TypeProto* type(std::string_view name);    // null when absent
  // Known, but without effect here.
  void ignore(std::string_view name) { find_used(name); }

  // A function's default for an attribute that its call leaves out.
  void add_default(const schema::AttributeProto& attribute);
  // Throws a DiagnosticError for an attribute that nobody asked for.
  void check_all_used() const;

 private:
  const schema::AttributeProto* find(std::string_view name) const;
  const schema::AttributeProto* find_used(std::string_view name);
  const schema::AttributeProto* find_typed(std::string_view name, int type);
  [[noreturn]] void wrong(std::string message) const;

  struct Entry {
    const schema::AttributeProto* proto;
    bool used = false;
  };
  const Model& model_;
  std::unordered_map<std::string, Entry> entries_;
  support::Place place_;
};

}  // namespace lathe::onnx
