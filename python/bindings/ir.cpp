#include "bindings.h"
#include "driver/model_file.h"
#include "driver/print.h"
#include "ir/structural.h"
#include "relax/expr.h"
#include "tir/stmt.h"

namespace lathe::python {

void bind_ir(nb::module_& m) {
  nb::class_<ir::IRModule>(m, "IRModule", "A program: graph functions and tensor programs by name.")
      .def(
          "script", [](const ir::IRModule& module) { return driver::print(module); },
          "The program's text: parsed again, it is the same program.")
      .def_prop_ro(
          "functions",
          [](const ir::IRModule& module) {
            nb::dict kinds;
            for (const auto& [name, function] : module)
              kinds[name.c_str()] = function.is<tir::PrimFunc>() ? "tir" : "relax";
            return kinds;
          },
          "The functions' names in order, each with the IR it is written in.")
      .def(
          "structural_equal", [](const ir::IRModule& a, const ir::IRModule& b) { return ir::structural_equal(a, b); },
          nb::arg("other"), "Whether the programs are the same up to names of variables.")
      .def(
          "first_difference", [](const ir::IRModule& a, const ir::IRModule& b) { return ir::first_difference(a, b); },
          nb::arg("other"), "Where the programs first differ, or None.")
      .def("__len__", &ir::IRModule::size)
      .def("__repr__", [](const ir::IRModule& module) {
        std::string names;
        for (const auto& [name, function] : module) names += (names.empty() ? "" : ", ") + name;
        return "IRModule(" + names + ")";
      });
}

}  // namespace lathe::python
