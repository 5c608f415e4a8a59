#include "nodes.h"
#include "tir/intrinsics/library.h"

namespace lathe::python {
namespace {

using ContextRef = std::shared_ptr<tir::Context>;

tir::Function function_of(nb::handle object, const char* what) {
  const ir::NodeRef node = node_of(object);
  if (!node || !node.as<tir::PrimFunc>()) throw nb::type_error((std::string(what) + " is a PrimFunc").c_str());
  return ir::cast<tir::PrimFunc>(node);
}

}  // namespace

void bind_intrinsics(nb::module_& m) {
  nb::class_<ContextRef>(m, "Context", "What users register; lathe.tir owns the one that is used by itself.")
      .def("__init__", [](ContextRef* made) { new (made) ContextRef(std::make_shared<tir::Context>()); })
      .def(
          "add_intrin",
          [](const ContextRef& context, const std::string& name, nb::handle desc, nb::handle impl, bool replace) {
            unwrap(context->add(name, {function_of(desc, "desc"), function_of(impl, "impl")}, replace));
          },
          nb::arg("name"), nb::arg("desc"), nb::arg("impl"), nb::arg("replace"))
      .def(
          "find_intrin",
          [](const ContextRef& context, const std::string& name) -> nb::object {
            const auto found = context->find(name);
            if (!found) return nb::none();
            return nb::make_tuple(node_object(found->description), node_object(found->implementation));
          },
          nb::arg("name"))
      .def("intrin_names", [](const ContextRef& context) {
        nb::list names;
        for (const std::string& name : context->names()) names.append(name);
        return names;
      });
  m.def(
      "offered_intrins",
      [](const std::string& target) { return tir::offered_intrins(unwrap(target::parse_target(target))); },
      nb::arg("target"), "The compiler's own intrinsics that a target has the instructions for.");
}

}  // namespace lathe::python
