// Value: what an attribute or annotation may hold. Attributes: an ordered map from names to values.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "ir/dtype.h"
#include "ir/node.h"

namespace lathe::ir {

struct Value {
  using List = std::vector<Value>;
  using Map = std::map<std::string, Value>;
  using Variant = std::variant<std::monostate, bool, int64_t, double, std::string, DType, NodeRef, List, Map>;

  // Out of line, so that the variant's machinery is compiled once.
  Value();
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();
  Value(bool v);
  Value(int v);
  Value(int64_t v);
  Value(double v);
  Value(const char* v);
  Value(std::string_view v);
  Value(std::string v);
  Value(DType v);
  Value(List v);
  Value(Map v);
  Value(NodeRef v);
  template <class T>
  Value(const Ref<T>& v) : Value(NodeRef(v)) {}

  template <class T>
  const T* get() const {
    return std::get_if<T>(&data);
  }
  bool empty() const { return std::holds_alternative<std::monostate>(data); }

  Variant data;
};

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Value>> entries) : entries_(entries) {}

  const Value* find(const std::string& name) const {
    const auto it = entries_.find(name);
    return it == entries_.end() ? nullptr : &it->second;
  }
  template <class T>
  const T* get(const std::string& name) const {
    const Value* value = find(name);
    return value ? value->get<T>() : nullptr;
  }
  template <class T>
  T get_or(const std::string& name, T fallback) const {
    const T* value = get<T>(name);
    return value ? *value : fallback;
  }
  bool contains(const std::string& name) const { return entries_.count(name) != 0; }
  void set(const std::string& name, Value value) { entries_[name] = std::move(value); }
  void erase(const std::string& name) { entries_.erase(name); }
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  Value::Map& entries() { return entries_; }
  const Value::Map& entries() const { return entries_; }

 private:
  Value::Map entries_;
};

}  // namespace lathe::ir
