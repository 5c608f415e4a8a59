#include <deque>

#include "nodes.h"
#include "tensors.h"
#include "tir/intrinsics/library.h"

namespace lathe::python {
namespace {

using ContextRef = std::shared_ptr<tir::Context>;

tir::Function function_of(nb::handle object, const char* what) {
  const ir::NodeRef node = node_of(object);
  if (!node || !node.as<tir::PrimFunc>()) throw nb::type_error((std::string(what) + " is a PrimFunc").c_str());
  return ir::cast<tir::PrimFunc>(node);
}

// A function of Python's as programs call it, from any thread. Copies of it share one reference, dropped under the
// lock.
class PythonFunction {
 public:
  PythonFunction(nb::callable function, nb::callable lend)
      : held_(new Held{std::move(function), std::move(lend)}, [](Held* held) {
          if (!nb::is_alive()) return;  // the interpreter is gone, and what it held
          const nb::gil_scoped_acquire locked;
          delete held;
        }) {}

  // What Python raises goes through the program to whoever runs it.
  void operator()(std::span<const LathePassed> arguments, LathePassed& result) const {
    const nb::gil_scoped_acquire locked;
    std::deque<LentTensor> lent;
    nb::list given;
    for (const LathePassed& argument : arguments) given.append(object_of(argument, lent));
    const nb::object returned = held_->function(*nb::tuple(given));
    for (LentTensor& tensor : lent) tensor.pack_written();
    keep(returned, result);
  }

  const nb::callable& function() const { return held_->function; }

 private:
  struct Held {
    nb::callable function, lend;
  };

  nb::object object_of(const LathePassed& argument, std::deque<LentTensor>& lent) const {
    switch (argument.kind) {
      case LATHE_PASSED_INTEGER:
        return nb::int_(argument.of.integer);
      case LATHE_PASSED_REAL:
        return nb::float_(argument.of.real);
      case LATHE_PASSED_TEXT:
        return nb::str(argument.of.text);
      default:
        return held_->lend(lent.emplace_back(*argument.of.tensor).array());
    }
  }

  // None is 0: a program that calls for the effect alone asks for a number, too.
  static void keep(const nb::object& returned, LathePassed& result) {
    if (result.kind == LATHE_PASSED_NOTHING || returned.is_none()) return;
    if (result.kind == LATHE_PASSED_REAL) {
      result.of.real = PyFloat_AsDouble(returned.ptr());
    } else {
      const nb::object number = nb::steal(PyNumber_Index(returned.ptr()));
      if (number.is_valid()) result.of.integer = PyLong_AsLongLong(number.ptr());
    }
    if (PyErr_Occurred()) throw nb::python_error();
  }

  std::shared_ptr<Held> held_;
};

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
      .def("intrin_names",
           [](const ContextRef& context) {
             nb::list names;
             for (const std::string& name : context->names()) names.append(name);
             return names;
           })
      .def(
          "set_function",
          [](const ContextRef& context, const std::string& name, nb::callable function, nb::callable lend) {
            context->set_function(name, PythonFunction(std::move(function), std::move(lend)));
          },
          nb::arg("name"), nb::arg("function"), nb::arg("lend"))
      .def(
          "remove_function",
          [](const ContextRef& context, const std::string& name) { return context->remove_function(name); },
          nb::arg("name"));
  m.def(
      "offered_intrins",
      [](const std::string& target) { return tir::offered_intrins(unwrap(target::parse_target(target))); },
      nb::arg("target"), "The compiler's own intrinsics that a target has the instructions for.");
}

}  // namespace lathe::python
