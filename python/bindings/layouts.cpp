#include "nodes.h"
#include "tir/layout.h"

namespace lathe::python {
namespace {

using tir::Layout;

nb::list exprs(const std::vector<ir::Expr>& values) {
  nb::list list;
  for (const ir::Expr& value : values) list.append(node_object(value));
  return list;
}

}  // namespace

void bind_layouts(nb::module_& m) {
  nb::class_<Layout>(m, "LayoutState", "The axes of a layout; lathe.tir.Layout is what users see.")
      .def_prop_ro("name", &Layout::name)
      .def_prop_ro("axes",
                   [](const Layout& layout) {
                     std::string names;
                     for (const tir::LayoutAxis& axis : layout.axes) names += axis.name;
                     return names;
                   })
      .def("factor_of", &Layout::factor_of, nb::arg("axis"));
  m.def("layout", [](const std::string& text) { return unwrap(tir::parse_layout(text)); }, nb::arg("text"));
  m.def(
      "layouts_convertible", [](const Layout& from, const Layout& to) { unwrap(tir::convertible(from, to)); },
      nb::arg("source"), nb::arg("target"), "Raises where two layouts are not of the same primal axes.");
  m.def(
      "convert_indices",
      [](const Layout& from, const Layout& to, nb::handle indices) {
        return exprs(unwrap(tir::convert_indices(from, to, exprs_of(indices))));
      },
      nb::arg("source"), nb::arg("target"), nb::arg("indices"));
  m.def(
      "convert_shape",
      [](const Layout& from, const Layout& to, nb::handle shape) {
        return exprs(unwrap(tir::convert_shape(from, to, exprs_of(shape))));
      },
      nb::arg("source"), nb::arg("target"), nb::arg("shape"));
}

}  // namespace lathe::python
