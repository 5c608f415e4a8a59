// Operator attributes: a struct of typed fields each. `attributes_of<T>()` is the class that an operator's row names,
// derived from T's fields; from_values makes one from the script's keyword arguments.
//
//   struct SoftmaxAttributes : AttributesNode {
//     static constexpr std::string_view kind_name = "SoftmaxAttributes";
//     int64_t axis = -1;
//     static constexpr auto fields() { return std::tuple{field("axis", &SoftmaxAttributes::axis)}; }
//   };
#pragma once

#include "relax/codes.h"
#include "relax/operator.h"

namespace lathe::relax {

namespace detail {

// Reads `value` into `field`; false when it is of another type. Integers are accepted where floats are expected.
inline bool read_value(const Value& value, bool& field) {
  if (const auto* b = value.get<bool>()) return field = *b, true;
  if (const auto* i = value.get<int64_t>()) return field = *i != 0, true;
  return false;
}
inline bool read_value(const Value& value, int64_t& field) {
  const auto* i = value.get<int64_t>();
  return i && (field = *i, true);
}
inline bool read_value(const Value& value, double& field) {
  if (const auto* d = value.get<double>()) return field = *d, true;
  if (const auto* i = value.get<int64_t>()) return field = static_cast<double>(*i), true;
  return false;
}
inline bool read_value(const Value& value, std::string& field) {
  const auto* s = value.get<std::string>();
  return s && (field = *s, true);
}
inline bool read_value(const Value& value, DType& field) {
  if (const auto* d = value.get<DType>()) return field = *d, true;
  const auto* s = value.get<std::string>();
  if (!s) return false;
  const std::optional<DType> parsed = DType::parse(*s);
  return parsed && (field = *parsed, true);
}
template <class T>
bool read_value(const Value& value, std::vector<T>& field) {
  field.clear();
  const auto* list = value.get<Value::List>();
  if (!list) {  // one value stands for a list of one
    field.emplace_back();
    return read_value(value, field.back());
  }
  for (const Value& item : *list) {
    field.emplace_back();
    if (!read_value(item, field.back())) return false;
  }
  return true;
}

template <class T>
bool read_value(const Value& value, std::optional<T>& field) {
  if (value.empty()) return field.reset(), true;
  return read_value(value, field.emplace());
}
template <class T>
Result<AttributesRef> attributes_from(const Value::Map& values) {
  Ref<T> made = make<T>();
  T& attributes = const_cast<T&>(*made);
  std::string wrong;
  size_t used = 0;
  ir::detail::each_field<T>([&](const auto& f) {
    const auto it = values.find(std::string(f.name));
    if (it == values.end()) return;
    ++used;
    if (!read_value(it->second, attributes.*f.member)) wrong = std::string(f.name);
  });
  if (!wrong.empty())
    return support::Diagnostic{.code = codes::wrong_attribute,
                               .message = "attribute '" + wrong + "' has a value of the wrong type"};
  if (used != values.size())
    for (const auto& [name, value] : values) {
      bool known = false;
      ir::detail::each_field<T>([&](const auto& f) { known = known || f.name == name; });
      if (!known)
        return support::Diagnostic{.code = codes::wrong_attribute, .message = "there is no attribute '" + name + "'"};
    }
  return AttributesRef(made);
}

}  // namespace detail

template <class T>
const AttributesClass* attributes_of() {
  static constexpr AttributesClass attributes_class{
      .name = T::kind_name,
      .defaults = []() -> AttributesRef { return make<T>(); },
      .from_values = &detail::attributes_from<T>,
  };
  return &attributes_class;
}

}  // namespace lathe::relax
