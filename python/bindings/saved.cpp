#include "driver/saved/json.h"
#include "driver/saved/node_kinds.h"
#include "nodes.h"

namespace lathe::python {
namespace {

using ir::Value;

constexpr int most_nested = 200;

// Values as `value_or_throw` takes them, with modules anywhere among them. What would come back as something else, like
// an interval that becomes a dict, is refused.
Value saved_value(nb::handle object, int nesting) {
  if (nesting > most_nested) throw nb::value_error("a value is nested more than 200 levels deep");
  if (nb::isinstance<ir::IRModule>(object)) return driver::saved::module_node(nb::cast<const ir::IRModule&>(object));
  if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
    Value::List list;
    for (nb::handle item : object) list.push_back(saved_value(item, nesting + 1));
    return list;
  }
  if (PyDict_Check(object.ptr())) {
    Value::Map map;
    for (const auto& [key, item] : nb::borrow<nb::dict>(object)) {
      if (!nb::isinstance<nb::str>(key)) throw nb::type_error("the keys of a dict that is saved are strings");
      map[utf8_of(key)] = saved_value(item, nesting + 1);
    }
    return map;
  }
  Value value = value_or_throw(object);
  if (value.get<Value::Map>() || value.get<Value::List>()) {
    const std::string type = nb::cast<std::string>(nb::object(object.type().attr("__name__")));
    throw nb::type_error(("programs hold numbers, strings, lists, dicts and nodes, not a " + type).c_str());
  }
  return value;
}

nb::object saved_object(const Value& value) {
  if (const auto* x = value.get<ir::NodeRef>())
    if (auto module = driver::saved::node_module(*x)) return nb::cast(*std::move(module));
  if (const auto* x = value.get<Value::List>()) {
    nb::list list;
    for (const Value& item : *x) list.append(saved_object(item));
    return list;
  }
  if (const auto* x = value.get<Value::Map>()) {
    nb::dict map;
    for (const auto& [key, item] : *x) map[nb::cast(key)] = saved_object(item);
    return map;
  }
  return value_object(value);
}

}  // namespace

void bind_saved(nb::module_& m) {
  m.def(
      "save_json", [](nb::handle object) { return unwrap(driver::saved::save_json(saved_value(object, 0))); },
      nb::arg("node").none());
  m.def(
      "load_json", [](const std::string& text) { return saved_object(unwrap(driver::saved::load_json(text))); },
      nb::arg("text"));
}

}  // namespace lathe::python
