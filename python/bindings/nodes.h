// Nodes of the IRs across the border: one Python class a kind, its attributes derived from the kind's fields.
#pragma once

#include "bindings.h"
#include "ir/build.h"
#include "ir/function.h"
#include "script/options.h"

namespace lathe::python {

// The node as an object of the Python class of its kind; None for a null handle.
nb::object node_object(const ir::NodeRef& node);
// The node in an object of such a class, or null.
ir::NodeRef node_of(nb::handle object);

// The node as one of a kind; a TypeError that says `what` is expected.
template <class T>
ir::Ref<T> node_as(nb::handle object, const char* what) {
  const ir::NodeRef node = node_of(object);
  if (!node || !node.as<T>()) throw nb::type_error(what);
  return ir::cast<T>(node);
}

// A str of Python's as UTF-8; a ValueError where it has half a surrogate pair.
std::string utf8_of(nb::handle text);

// Values as Python has them: None, numbers, strings, dtypes by their names, lists, dicts, nodes.
nb::object value_object(const ir::Value& value);
// The value of an object; nothing where it has no value in programs.
std::optional<ir::Value> value_of(nb::handle object);
// The same; a TypeError where it has none.
ir::Value value_or_throw(nb::handle object);

// The node, where printing and passes can walk it: a block is given as many values as it has variables. ValueError
// otherwise.
ir::NodeRef checked(ir::NodeRef node);

// An expression of an object: a node, or a number as a constant of `dtype` (numbers alone: int64 and float32).
ir::Expr expr_of(nb::handle object, std::optional<ir::DType> dtype = std::nullopt);
std::vector<ir::Expr> exprs_of(nb::handle objects);

// How text is written: any of "ir_prefix", "tir_prefix", "relax_prefix", "indent_spaces", "syntax_sugar" and
// "show_struct_info". ValueError where a prefix is no identifier, or an indentation none of 1 to 16 spaces.
script::PrintOptions print_options_of(const nb::dict& given);

ir::DType dtype_named(const std::string& name);

}  // namespace lathe::python
