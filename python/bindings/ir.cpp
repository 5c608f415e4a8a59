#include "driver/model_file.h"
#include "driver/print.h"
#include "ir/structural.h"
#include "nodes.h"
#include "relax/expr.h"
#include "tir/stmt.h"

namespace lathe::python {
namespace {

void set_function(ir::IRModule& module, const std::string& name, nb::handle function) {
  const ir::NodeRef node = node_of(function);
  if (!node || node->node_class().family != ir::FunctionNode::family) throw nb::type_error("a module holds functions");
  module.set(name, ir::detail::narrow<ir::FunctionNode>(node));
}

}  // namespace

void bind_ir(nb::module_& m) {
  nb::class_<ir::IRModule>(m, "IRModule", "A program: graph functions and tensor programs by name.")
      .def(
          "__init__",
          [](ir::IRModule* self, const nb::dict& functions) {
            ir::IRModule module;
            for (const auto& [name, function] : functions) set_function(module, utf8_of(nb::str(name)), function);
            new (self) ir::IRModule(std::move(module));
          },
          nb::arg("functions") = nb::dict())
      .def("_find", [](const ir::IRModule& module, const std::string& name) { return node_object(module.find(name)); })
      .def("_set", set_function)
      .def("_erase", [](ir::IRModule& module, const std::string& name) { return module.erase(name); })
      .def("_copy", [](const ir::IRModule& module) { return ir::IRModule(module); })
      .def("_set_attrs",
           [](ir::IRModule& module, const nb::dict& attrs) {
             ir::Attributes made;
             for (const auto& [name, value] : attrs) {
               const std::optional<ir::Value> known = value_of(value);
               if (!known) throw nb::type_error("an attribute is a number, a text, a node, or lists and dicts of them");
               made.set(utf8_of(name), *known);
             }
             module.attrs = std::move(made);
           })
      .def_prop_ro("attrs", [](const ir::IRModule& module) { return value_object(module.attrs.entries()); })
      .def(
          "_text",
          [](const ir::IRModule& module, const nb::dict& options) {
            return driver::print(module, print_options_of(options));
          },
          nb::arg("options") = nb::dict(), "The program's text: parsed again, it is the same program.")
      .def_prop_ro(
          "_kinds",
          [](const ir::IRModule& module) {
            nb::dict kinds;
            for (const auto& [name, function] : module)
              kinds[nb::str(name.data(), name.size())] = function.is<tir::PrimFunc>() ? "tir" : "relax";
            return kinds;
          },
          "The functions' names in order, each with the IR it is written in.")
      .def_prop_ro(
          "functions",
          [](const nb::object& module) -> nb::dict {
            return nb::cast<nb::dict>(nb::module_::import_("lathe.ir.module").attr("GlobalVarMap")(module));
          },
          "The functions by their GlobalVar, in order.")
      .def(
          "structural_equal", [](const ir::IRModule& a, const ir::IRModule& b) { return ir::structural_equal(a, b); },
          nb::arg("other"), "Whether the programs are the same up to names of variables.")
      .def(
          "first_difference", [](const ir::IRModule& a, const ir::IRModule& b) { return ir::first_difference(a, b); },
          nb::arg("other"), "Where the programs first differ, or None.")
      .def("structural_hash", [](const ir::IRModule& module) { return ir::structural_hash(module).low; })
      .def("__len__", &ir::IRModule::size)
      .def("__repr__", [](const ir::IRModule& module) {
        std::string names;
        for (const auto& [name, function] : module) names += (names.empty() ? "" : ", ") + name;
        return "IRModule(" + names + ")";
      });
}

}  // namespace lathe::python
