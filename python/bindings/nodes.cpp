#include "nodes.h"

#include "driver/print.h"
#include "driver/saved/node_kinds.h"
#include "ir/structural.h"
#include "ir/visit.h"
#include "script/names.h"
#include "tir/stmt.h"

namespace lathe::python {
namespace {

using driver::saved::node_kinds;
using ir::NodeClass;
using ir::NodeRef;
using ir::Value;

// The Python classes by kind; filled by lathe/ir/node.py while it is imported. Outlives the interpreter.
std::unordered_map<const NodeClass*, nb::object>& classes() {
  static auto* all = new std::unordered_map<const NodeClass*, nb::object>;
  return *all;
}

constexpr int max_nesting = 200;

std::optional<Value> value_of(nb::handle object, int nesting);

std::optional<Value> list_of(nb::handle object, int nesting) {
  Value::List list;
  for (nb::handle item : object) {
    auto value = value_of(item, nesting + 1);
    if (!value) return std::nullopt;
    list.push_back(*std::move(value));
  }
  return Value(std::move(list));
}

std::optional<Value> map_of(nb::handle object, int nesting) {
  Value::Map map;
  for (const auto& [key, item] : nb::borrow<nb::dict>(object)) {
    if (!nb::isinstance<nb::str>(key)) return std::nullopt;
    auto value = value_of(item, nesting + 1);
    if (!value) return std::nullopt;
    map[utf8_of(key)] = *std::move(value);
  }
  return Value(std::move(map));
}

std::optional<Value> integer_of(nb::handle object) {
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  if (overflow != 0) throw nb::value_error("an integer does not fit in 64 bits");
  return Value(value);
}

std::optional<Value> value_of(nb::handle object, int nesting) {
  if (nesting > max_nesting) throw nb::value_error("a value is nested more than 200 levels deep");
  PyObject* const p = object.ptr();
  if (object.is_none()) return Value();
  if (PyBool_Check(p)) return Value(p == Py_True);
  if (PyLong_Check(p)) return integer_of(object);
  if (PyFloat_Check(p)) return Value(PyFloat_AsDouble(p));
  if (PyUnicode_Check(p)) return Value(utf8_of(object));
  if (NodeRef node = node_of(object)) return Value(std::move(node));
  if (PyTuple_Check(p) || PyList_Check(p)) return list_of(object, nesting);
  if (PyDict_Check(p)) return map_of(object, nesting);
  // What stands for a node or a value without being one: ranges, deferred comparisons, dtypes of scripts.
  if (nb::hasattr(object, "__lathe_value__"))
    return value_of(nb::object(object.attr("__lathe_value__")()), nesting + 1);
  if (PyIndex_Check(p)) {  // NumPy's integers
    const nb::object number = nb::steal(PyNumber_Index(p));
    if (!number.is_valid()) throw nb::python_error();
    return integer_of(number);
  }
  // NumPy's floats; nothing that is a tensor.
  if (nb::hasattr(object, "dtype") && nb::hasattr(object, "item") && nb::hasattr(object, "shape") &&
      nb::len(nb::object(object.attr("shape"))) == 0)
    return value_of(nb::object(object.attr("item")()), nesting + 1);
  return std::nullopt;
}

NodeRef construct(size_t kind, nb::list fields) {
  std::vector<Value> values;
  for (nb::handle field : fields) values.push_back(value_or_throw(field));
  return checked(node_kinds().at(kind)->construct(values));
}

}  // namespace

NodeRef checked(NodeRef node) {
  const auto* realize = node.as<tir::BlockRealize>();
  if (realize && realize->block && realize->iter_values.size() != realize->block->iter_vars.size())
    throw nb::value_error(("block '" + realize->block->name + "' has " +
                           std::to_string(realize->block->iter_vars.size()) + " variables, and is given " +
                           std::to_string(realize->iter_values.size()) + " values")
                              .c_str());
  return node;
}

namespace {

std::string text_of(const NodeRef& node, const std::string& name, const nb::dict& options) {
  return driver::print_node(node, name, print_options_of(options));
}

ir::DType dtype_of(const NodeRef& node) {
  if (node->node_class().family == ir::ExprNode::family) return static_cast<const ir::ExprNode*>(node.get())->dtype;
  throw nb::type_error("this node has no dtype");
}

std::string place_of(const NodeRef& node) { return node->origin() ? support::render(*node->origin()) : std::string(); }

nb::list kind_rows() {
  nb::list rows;
  for (const NodeClass* kind : node_kinds()) {
    nb::list names;
    for (const std::string_view name : kind->field_names) names.append(nb::str(name.data(), name.size()));
    rows.append(nb::make_tuple(std::string(kind->name), std::string(kind->family), names));
  }
  return rows;
}

}  // namespace

script::PrintOptions print_options_of(const nb::dict& given) {
  script::PrintOptions options;
  const auto prefix = [&](const char* name, std::string& written) {
    if (!given.contains(name)) return;
    written = utf8_of(given[name]);
    if (!script::is_identifier(written))
      throw nb::value_error(fmt::format("{} is a name of Python's, not '{}'", name, written).c_str());
  };
  prefix("ir_prefix", options.ir_prefix);
  prefix("tir_prefix", options.tir_prefix);
  prefix("relax_prefix", options.relax_prefix);
  if (given.contains("indent_spaces")) options.indent_spaces = nb::cast<int>(given["indent_spaces"]);
  if (options.indent_spaces < 1 || options.indent_spaces > 16)
    throw nb::value_error(fmt::format("indent_spaces is 1 to 16, not {}", options.indent_spaces).c_str());
  if (given.contains("syntax_sugar")) options.syntax_sugar = nb::cast<bool>(given["syntax_sugar"]);
  if (given.contains("show_struct_info")) options.show_struct_info = nb::cast<bool>(given["show_struct_info"]);
  return options;
}

nb::object node_object(const NodeRef& node) {
  if (!node) return nb::none();
  const auto found = classes().find(&node->node_class());
  const nb::handle type = found == classes().end() ? nb::type<NodeRef>() : nb::handle(found->second);
  nb::object made = nb::inst_alloc(type);
  new (nb::inst_ptr<NodeRef>(made)) NodeRef(node);
  nb::inst_mark_ready(made);
  return made;
}

NodeRef node_of(nb::handle object) {
  if (!nb::isinstance<NodeRef>(object) || !nb::inst_ready(object)) return {};
  return *nb::inst_ptr<NodeRef>(object);
}

nb::object value_object(const Value& value) {
  if (const auto* x = value.get<bool>()) return nb::bool_(*x);
  if (const auto* x = value.get<int64_t>()) return nb::int_(*x);
  if (const auto* x = value.get<double>()) return nb::float_(*x);
  if (const auto* x = value.get<std::string>()) return nb::cast(*x);
  if (const auto* x = value.get<ir::DType>()) return nb::cast(x->str());
  if (const auto* x = value.get<NodeRef>()) return node_object(*x);
  if (const auto* x = value.get<Value::List>()) {
    nb::list list;
    for (const Value& item : *x) list.append(value_object(item));
    return list;
  }
  if (const auto* x = value.get<Value::Map>()) {
    nb::dict map;
    for (const auto& [key, item] : *x) map[nb::cast(key)] = value_object(item);
    return map;
  }
  return nb::none();
}

std::string utf8_of(nb::handle text) {
  Py_ssize_t bytes = 0;
  if (const char* utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &bytes)) return {utf8, static_cast<size_t>(bytes)};
  if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw nb::python_error();
  PyErr_Clear();
  throw nb::value_error("a text with half a surrogate pair is no UTF-8");
}

std::optional<Value> value_of(nb::handle object) { return value_of(object, 0); }

Value value_or_throw(nb::handle object) {
  if (auto value = value_of(object)) return *std::move(value);
  const std::string type = nb::cast<std::string>(nb::object(object.type().attr("__name__")));
  throw nb::type_error(("programs hold numbers, strings, lists, dicts and nodes, not a " + type).c_str());
}

ir::Expr expr_of(nb::handle object, std::optional<ir::DType> dtype) {
  const Value value = value_or_throw(object);
  if (const auto* x = value.get<bool>()) return dtype ? ir::constant(*dtype, int64_t{*x}) : ir::boolean(*x);
  if (const auto* x = value.get<int64_t>()) return ir::constant(dtype.value_or(ir::DType::int64()), *x);
  if (const auto* x = value.get<double>())
    return ir::constant(dtype && dtype->is_floating() ? *dtype : ir::DType::float32(), *x);
  if (const auto* x = value.get<std::string>()) return ir::make<ir::StringImm>(*x);
  const auto* node = value.get<NodeRef>();
  if (node && *node && (*node)->node_class().family == ir::ExprNode::family)
    return ir::detail::narrow<ir::ExprNode>(*node);
  const std::string type = nb::cast<std::string>(nb::object(object.type().attr("__name__")));
  throw nb::type_error(("expected a scalar expression or a number, not a " + type).c_str());
}

std::vector<ir::Expr> exprs_of(nb::handle objects) {
  if (!PyTuple_Check(objects.ptr()) && !PyList_Check(objects.ptr())) return {expr_of(objects)};
  std::vector<ir::Expr> list;
  for (nb::handle object : objects) list.push_back(expr_of(object));
  return list;
}

ir::DType dtype_named(const std::string& name) {
  if (const auto known = ir::DType::parse(name)) return *known;
  throw nb::value_error(("there is no dtype '" + name + "'").c_str());
}

void bind_nodes(nb::module_& m) {
  nb::class_<NodeRef>(m, "Node", "A node of a program. Immutable; its attributes are the fields of its kind.")
      .def(
          "__init__",
          [](NodeRef* self, size_t kind, const nb::list& fields) { new (self) NodeRef(construct(kind, fields)); },
          nb::arg("kind"), nb::arg("fields"))
      .def(
          "same_as", [](const NodeRef& a, nb::handle b) { return a.get() == node_of(b).get(); }, nb::arg("other"),
          "Whether both are one node, not merely equal ones.")
      .def("__hash__", [](const NodeRef& node) { return std::hash<NodeRef>()(node); })
      .def("_text", text_of, nb::arg("name"), nb::arg("options") = nb::dict())
      .def_prop_ro("span", place_of, "Where in a text or model the node came from, or \"\".");
  m.def("node_kinds", kind_rows, "Each kind of node: its name, its family, and its fields' names.");
  m.def(
      "register_node_class", [](size_t kind, nb::object type) { classes()[node_kinds().at(kind)] = std::move(type); },
      nb::arg("kind"), nb::arg("type"), "Makes nodes of a kind objects of `type`, a class derived from Node.");
  m.def(
      "node_field",
      [](const NodeRef& node, size_t index) { return value_object(node->node_class().field_value(*node, index)); },
      nb::arg("node"), nb::arg("index"), "A field of a node, by its number.");
  m.def(
      "node_dtype", [](const NodeRef& node) { return dtype_of(node).str(); }, nb::arg("node"),
      "An expression's dtype.");
  m.def(
      "structural_equal",
      [](const NodeRef& a, const NodeRef& b, bool map_free_vars) { return ir::structural_equal(a, b, map_free_vars); },
      nb::arg("lhs"), nb::arg("rhs"), nb::arg("map_free_vars"));
  m.def(
      "first_difference",
      [](const NodeRef& a, const NodeRef& b, bool map_free_vars) { return ir::first_difference(a, b, map_free_vars); },
      nb::arg("lhs"), nb::arg("rhs"), nb::arg("map_free_vars"));
  m.def(
      "structural_hash",
      [](const NodeRef& node, bool map_free_vars) { return ir::structural_hash(node, map_free_vars).low; },
      nb::arg("node"), nb::arg("map_free_vars"));
  m.def(
      "free_vars",
      [](const NodeRef& node) {
        nb::list vars;
        for (const ir::Var& v : ir::free_vars(node)) vars.append(node_object(v));
        return vars;
      },
      nb::arg("node"), "The variables used and not bound in a program, in order of first use.");
  m.def(
      "substitute",
      [](const NodeRef& node, nb::list pairs) {
        ir::VarMap map;
        for (nb::handle pair : pairs) {
          const NodeRef var = node_of(nb::object(pair[0]));
          if (!var || !var.as<ir::VarNode>()) throw nb::type_error("variables are replaced");
          const ir::Var key = ir::cast<ir::VarNode>(var);
          map[key] = expr_of(nb::object(pair[1]), key->dtype);
        }
        return node_object(ir::substitute(node, map));
      },
      nb::arg("node"), nb::arg("pairs"));
  m.def(
      "post_order_visit",
      [](const NodeRef& node, const nb::callable& visit) {
        ir::post_order(node, [&](const NodeRef& n) { visit(node_object(n)); });
      },
      nb::arg("node"), nb::arg("visit"));
  m.def(
      "pre_order_visit",
      [](const NodeRef& node, const nb::callable& visit) {
        ir::pre_order(node, [&](const NodeRef& n) { return nb::cast<bool>(nb::object(visit(node_object(n)))); });
      },
      nb::arg("node"), nb::arg("visit"));
  m.def(
      "expr",
      [](nb::handle object, const std::optional<std::string>& dtype) {
        return node_object(expr_of(object, dtype ? std::optional(dtype_named(*dtype)) : std::nullopt));
      },
      nb::arg("value").none(), nb::arg("dtype").none() = nb::none(), "A number as a constant; an expression as it is.");
}

}  // namespace lathe::python
