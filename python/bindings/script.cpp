#include "driver/verify_module.h"
#include "nodes.h"
#include "ops/operators.h"
#include "relax/script/dialect.h"
#include "script/evaluate.h"
#include "script/parse.h"
#include "tir/script/dialect.h"

namespace lathe::python {
namespace {

using ir::Value;

// Sets the names of a text that Python holds: `names` maps each to its object, `evaluate(text, name → value)` is
// Python's.
class PythonHost final : public script::HostLanguage {
 public:
  PythonHost(nb::dict names, nb::callable evaluate) : names_(std::move(names)), evaluate_(std::move(evaluate)) {}

  std::optional<Value> captured(const std::string& name) override {
    nb::object key = nb::cast(name);
    if (!names_.contains(key)) {
      nb::module_ builtins = nb::module_::import_("builtins");
      if (!nb::hasattr(builtins, name.c_str())) return std::nullopt;
      return Value();
    }
    // What is no value of programs can still be called, indexed or asked for an attribute, by Python.
    return value_of(nb::object(names_[key])).value_or(Value());
  }

  support::Result<Value> evaluate(const script::HostRequest& request) override {
    nb::dict values;
    for (const auto& [name, value] : request.names) values[nb::cast(name)] = value_object(value);
    try {
      const nb::object result = evaluate_(nb::cast(std::string(request.text)), values);
      if (auto value = value_of(result)) return *std::move(value);
      const std::string type = nb::cast<std::string>(nb::object(result.type().attr("__name__")));
      return support::Diagnostic{.code = {"script-python"},
                                 .message = "this gives a " + type + ", which programs have no value for"};
    } catch (nb::python_error& error) {
      // Ctrl-C and the like go through; what the user's code raises becomes a diagnostic with its place.
      if (!error.matches(PyExc_Exception)) throw;
      const std::string type = nb::cast<std::string>(nb::object(error.type().attr("__name__")));
      const std::string text = nb::cast<std::string>(nb::str(error.value()));
      return support::Diagnostic{.code = {"script-python"},
                                 .message = "Python raised " + type + (text.empty() ? "" : ": " + text)};
    }
  }

 private:
  nb::dict names_;
  nb::callable evaluate_;
};

ir::IRModule parse_script(const std::string& text, const std::string& file, nb::dict names, nb::callable evaluate,
                          const std::map<std::string, std::string>& aliases, bool indented, bool check) {
  PythonHost host(std::move(names), std::move(evaluate));
  script::ParseOptions options;
  options.host = &host;
  for (const auto& [name, path] : aliases) options.aliases[name] = path;
  options.indented = indented;
  const auto graph = relax::script_dialect(ops::default_operators());
  const script::Dialect* dialects[] = {&tir::script_dialect(), graph.get()};
  ir::IRModule module = unwrap(script::parse({file, text}, dialects, options));
  if (!check) return module;
  if (const support::Diagnostics found = driver::verify_module(module, {}); !found.empty()) raise(found);
  return module;
}

nb::object evaluate_script(const std::string& text, const nb::dict& names) {
  std::map<std::string, Value> values;
  for (const auto& [name, object] : names) values[nb::cast<std::string>(name)] = value_or_throw(object);
  support::Result<Value> result = script::evaluate({"<T>", text}, values);
  if (result.ok()) return value_object(*result);
  // The text is not the user's: its places would tell nothing.
  support::Diagnostics found = result.diagnostics();
  for (support::Diagnostic& d : found) {
    d.place = {};
    for (support::Note& note : d.notes) note.place = {};
  }
  raise(found);
}

nb::list intrinsic_rows() {
  nb::list rows;
  const auto text = [](std::string_view t) { return std::string(t); };
#define LATHE_INTRINSIC(NAME, ARITY, EFFECT, MEANING) \
  rows.append(                                        \
      nb::make_tuple(text(ir::intrinsic::NAME.name), ir::intrinsic::NAME.arity, text(ir::intrinsic::NAME.meaning)));
#include "ir/intrinsic.def"
#undef LATHE_INTRINSIC
  return rows;
}

}  // namespace

void bind_script(nb::module_& m) {
  m.def("parse_script", parse_script, nb::arg("text"), nb::arg("file"), nb::arg("names"), nb::arg("evaluate"),
        nb::arg("aliases"), nb::arg("indented"), nb::arg("check_well_formed"),
        "The program of a text; `names` are what Python has around it.");
  m.def("evaluate_script", evaluate_script, nb::arg("text"), nb::arg("names"),
        "One expression of the vocabulary of T, with the values of its names.");
  m.def("intrinsics", intrinsic_rows, "Each scalar function of T: its name, its arity, its meaning.");
}

}  // namespace lathe::python
