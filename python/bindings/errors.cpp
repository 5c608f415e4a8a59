#include <chrono>

#include "bindings.h"
#include "driver/report/reproducer.h"

namespace lathe::python {
namespace {

using support::Diagnostic;

// A message may quote bytes of a file or a part of a text: what is no UTF-8 shows as U+FFFD.
nb::object text_of(const std::string& bytes) {
  PyObject* text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (text == nullptr) throw nb::python_error();
  return nb::steal(text);
}

nb::object message_of(const Diagnostic& d) { return text_of(d.message); }

nb::list notes_of(const Diagnostic& d) {
  nb::list texts;
  for (const support::Note& note : d.notes) {
    const std::string place = support::render(note.place);
    texts.append(text_of(place.empty() ? note.message : place + ": " + note.message));
  }
  return texts;
}

// Sets the Python exception that lathe/errors.py makes of the diagnostics.
void set_error(const support::Diagnostics& diagnostics) {
  nb::list all;
  for (const Diagnostic& d : diagnostics) all.append(nb::cast(d));
  std::string text = support::render(diagnostics);
  while (text.ends_with('\n')) text.pop_back();
  nb::object error = nb::module_::import_("lathe.errors").attr("error_of")(all, text_of(text));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
}

void set_internal_error(const char* text) {
  nb::object error = nb::module_::import_("lathe.errors").attr("InternalError")(text_of(text), nb::list());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const support::DiagnosticError& e) {
    set_error(e.diagnostics);
  } catch (const driver::ReportedFailure& e) {
    set_internal_error(e.what());
  } catch (const support::InternalError& e) {
    set_internal_error(e.what());
  } catch (const std::bad_cast&) {  // what nanobind says of an argument that a function casts itself
    PyErr_SetString(PyExc_TypeError, "an argument is of a kind, or a number of a size, that is not taken here");
  }
}

}  // namespace

void raise(const support::Diagnostics& diagnostics) {
  throw_if_interrupted();
  throw support::DiagnosticError(diagnostics);
}

bool is_interrupted() {
  thread_local auto asked = std::chrono::steady_clock::now();
  const auto now = std::chrono::steady_clock::now();
  if (now - asked < std::chrono::milliseconds(20)) return false;
  asked = now;
  const nb::gil_scoped_acquire lock;
  return PyErr_Occurred() || PyErr_CheckSignals() != 0;
}

void throw_if_interrupted() {
  if (PyErr_Occurred()) throw nb::python_error();
}

void bind_errors(nb::module_& m) {
  nb::class_<Diagnostic>(m, "Diagnostic", "One thing a user is told: a sentence, where, and what may help.")
      .def_prop_ro(
          "code", [](const Diagnostic& d) { return std::string(d.code.name); }, "Its stable name.")
      .def_prop_ro("message", &message_of, "One sentence.")
      .def_prop_ro(
          "place", [](const Diagnostic& d) { return text_of(support::render(d.place)); },
          "\"bert.onnx, node 'Add_12'\", \"file.py:3:7\", or \"\".")
      .def_prop_ro("notes", &notes_of, "Second places that explain the first.")
      .def_prop_ro(
          "help", [](const Diagnostic& d) { return text_of(d.help); }, "A known fix, or \"\".")
      .def("__str__", [](const Diagnostic& d) { return text_of(support::render(d)); })
      .def("__repr__", [](const Diagnostic& d) {
        return text_of("Diagnostic(" + std::string(d.code.name) + ": " + d.message + ")");
      });
  nb::register_exception_translator(translate);
}

}  // namespace lathe::python
