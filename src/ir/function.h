// Functions and modules. PrimFunc (tir) and relax functions are kinds of FunctionNode.
#pragma once

#include "ir/expr.h"

namespace lathe::ir {

struct FunctionNode : Node {
  static constexpr std::string_view family = "function";
  using family_type = FunctionNode;
  Attributes attrs;
};
using BaseFunc = Ref<FunctionNode>;

// A set of functions by name, in order of insertion. A value; copying shares the functions.
class IRModule {
 public:
  // The function, or null.
  BaseFunc find(const std::string& name) const;
  template <class T>
  Ref<T> find_as(const std::string& name) const {
    const BaseFunc f = find(name);
    return f && f.as<T>() ? Ref<T>(f.as<T>()) : Ref<T>();
  }
  // Adds or replaces.
  void set(const std::string& name, BaseFunc function);
  bool erase(const std::string& name);
  // `hint`, or hint_1, hint_2, … : a name that no function has.
  std::string unique_name(const std::string& hint) const;

  using Entry = std::pair<std::string, BaseFunc>;
  const std::vector<Entry>& functions() const { return functions_; }
  auto begin() const { return functions_.begin(); }
  auto end() const { return functions_.end(); }
  size_t size() const { return functions_.size(); }

  Attributes attrs;

 private:
  std::vector<Entry> functions_;
  std::unordered_map<std::string, size_t> index_;
};

// The very same functions, not only equal ones, and equal attributes.
bool same_functions(const IRModule& a, const IRModule& b);
bool structural_equal(const IRModule& a, const IRModule& b);
std::optional<std::string> first_difference(const IRModule& a, const IRModule& b);
support::Hash128 structural_hash(const IRModule& module);

}  // namespace lathe::ir
