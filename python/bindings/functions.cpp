#include "driver/functions.h"

#include <deque>

#include "arrays/npy.h"
#include "driver/report/crash.h"
#include "driver/report/reproducer.h"
#include "nodes.h"
#include "support/environment.h"
#include "tensors.h"

namespace lathe::python {
namespace {

using driver::Argument;
using driver::BuiltFunctions;
using Built = driver::BuiltFunctionsRef;

// The arguments of one call and what keeps them alive.
struct Given {
  std::deque<InputTensor> tensors;
  std::vector<Argument> arguments;
};

void take(Given& given, const nb::tuple& objects) {
  for (nb::handle object : objects) {
    PyObject* const p = object.ptr();
    if (PyBool_Check(p) || PyLong_Check(p)) {
      given.arguments.emplace_back(nb::cast<int64_t>(object));
    } else if (PyFloat_Check(p)) {
      given.arguments.emplace_back(PyFloat_AsDouble(p));
    } else {
      const std::string name = "argument " + std::to_string(given.arguments.size());
      given.arguments.emplace_back(&given.tensors.emplace_back(object, name.c_str()).tensor());
    }
  }
}

Built build(const ir::IRModule& module, const std::string& target, const std::vector<std::string>& disabled_passes,
            const std::shared_ptr<tir::Context>& context, const std::string& debug_text) {
  driver::CompileOptions options;
  options.debug_text = debug_text;
  options.context = context;
  options.target = target::parse_target(target).value_or_throw();
  options.disabled_passes.insert(disabled_passes.begin(), disabled_passes.end());
  options.cancelled = is_interrupted;
  driver::Reproducer reproducer{.module = module, .arguments = {"compile", "{model}", "-o", "{folder}/functions.so"}};
  driver::append_options({target, {}, disabled_passes}, reproducer);
  const auto built = [&] {
    const nb::gil_scoped_release unlocked;
    return driver::reporting(reproducer, [&] { return BuiltFunctions::build(module, options); });
  }();
  throw_if_interrupted();
  return unwrap(built);
}

// What calls the function again by `lathe run`, with the arguments as they are by then.
driver::Reproducer reproducer_of(const Built& built, const std::string& name, const Given& given, int threads) {
  driver::Reproducer r{
      .files = {{"functions.so", "", [&built](const std::string& path) { return built->save(path).ok(); }}},
      .arguments = {"run", "{functions.so}", "--function", name}};
  for (size_t i = 0; i < given.arguments.size(); ++i) {
    std::string text;
    if (const auto* tensor = std::get_if<const DLTensor*>(&given.arguments[i])) {
      const std::string file = fmt::format("argument{}.npy", i);
      text = "{" + file + "}";
      r.files.push_back({file, "", [tensor = *tensor](const std::string& path) {
                           return tool::write_npy(path, tool::npy_array(*to_data(*tensor))).ok();
                         }});
    } else if (const auto* whole = std::get_if<int64_t>(&given.arguments[i])) {
      text = std::to_string(*whole);
    } else {
      text = fmt::format("{:.17g}", std::get<double>(given.arguments[i]));
    }
    r.arguments.insert(r.arguments.end(), {"--input", fmt::format("{}={}", i, text)});
  }
  r.arguments.insert(r.arguments.end(), {"--threads", std::to_string(threads)});
  return r;
}

// Runs `step` without the interpreter lock; an internal failure or a crash in it leaves the reproducer.
template <class Step>
auto reported(const Built& built, const std::string& name, const Given& given, int threads, Step&& step) {
  const auto reproducer = [&] { return reproducer_of(built, name, given, threads); };
  const driver::CrashWatch watch(reproducer);
  const nb::gil_scoped_release unlocked;
  try {
    return step();
  } catch (const support::InternalError& failure) {
    driver::Reproducer left = reproducer();
    left.what = failure.what();
    throw driver::ReportedFailure(driver::leave_reproducer(left));
  }
}

nb::object call(const Built& built, const std::string& name, const nb::tuple& objects, int threads) {
  Given given;
  take(given, objects);
  const auto status =
      reported(built, name, given, threads, [&] { return built->call(name, given.arguments, threads); });
  for (InputTensor& tensor : given.tensors) tensor.unpack_written();
  unwrap(status);
  return nb::none();
}

std::vector<double> time_calls(const Built& built, const std::string& name, const nb::tuple& objects, int number,
                               int repeat, double min_repeat_seconds, int64_t flush_bytes, int threads) {
  Given given;
  take(given, objects);
  const auto seconds = reported(built, name, given, threads, [&] {
    return built->time(name, given.arguments, {number, repeat, threads, min_repeat_seconds, flush_bytes});
  });
  return unwrap(seconds);
}

nb::list signatures(const Built& built) {
  nb::list rows;
  for (const driver::FunctionSignature& signature : built->signatures()) {
    nb::list parameters;
    for (size_t i = 0; i < signature.declared->params.size(); ++i)
      parameters.append(driver::describe_parameter(signature, i));
    rows.append(nb::make_tuple(signature.name, parameters));
  }
  return rows;
}

}  // namespace

void bind_functions(nb::module_& m) {
  nb::class_<Built>(m, "BuiltFunctions", "Compiled tensor functions; lathe.runtime.Module is what users see.")
      .def("call", call, nb::arg("name"), nb::arg("arguments"), nb::arg("threads"))
      .def("time", time_calls, nb::arg("name"), nb::arg("arguments"), nb::arg("number"), nb::arg("repeat"),
           nb::arg("min_repeat_seconds"), nb::arg("flush_bytes"), nb::arg("threads"))
      .def(
          "source", [](const Built& built, const std::string& form) { return unwrap(built->source(form)); },
          nb::arg("form"))
      .def(
          "save", [](const Built& built, const std::string& path) { unwrap(built->save(path)); }, nb::arg("path"))
      .def_prop_ro("signatures", signatures, "Each function's name, and its parameters in words.");
  m.def("build_functions", build, nb::arg("module"), nb::arg("target"), nb::arg("disabled_passes"), nb::arg("context"),
        nb::arg("debug_text"), "Compiles a module of tensor functions.");
  m.def(
      "open_functions", [](const std::string& path) { return unwrap(BuiltFunctions::open(path)); }, nb::arg("path"),
      "A library that was saved.");
}

}  // namespace lathe::python
