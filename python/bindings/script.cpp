#include <nanobind/stl/pair.h>

#include "codes.h"
#include "driver/verify_module.h"
#include "nodes.h"
#include "ops/operators.h"
#include "relax/script/dialect.h"
#include "script/evaluate.h"
#include "script/parse.h"
#include "te/loops/from_python.h"
#include "tir/script/dialect.h"

namespace lathe::python {
namespace {

using ir::Value;

// Sets the names of a text that Python holds: `names` maps each to its object, `evaluate(text, name → value)` is
// Python's.
class PythonHost final : public script::HostLanguage {
 public:
  PythonHost(nb::dict names, nb::callable evaluate) : names_(std::move(names)), evaluate_(std::move(evaluate)) {}

  std::optional<script::HostMacro> macro(std::string_view callee) override;

  std::optional<Value> captured(std::string_view name) override {
    nb::object key = nb::cast(std::string(name));
    if (!names_.contains(key)) {
      nb::module_ builtins = nb::module_::import_("builtins");
      if (!nb::hasattr(builtins, key)) return std::nullopt;
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
      return support::Diagnostic{.code = codes::python,
                                 .message = "this gives a " + type + ", which programs have no value for"};
    } catch (nb::python_error& error) {
      // Ctrl-C and the like go through; what the user's code raises becomes a diagnostic with its place.
      if (!error.matches(PyExc_Exception)) throw;
      const std::string type = nb::cast<std::string>(nb::object(error.type().attr("__name__")));
      const std::string text = nb::cast<std::string>(nb::str(error.value()));
      return support::Diagnostic{.code = codes::python,
                                 .message = "Python raised " + type + (text.empty() ? "" : ": " + text)};
    }
  }

 private:
  nb::dict names_;
  nb::callable evaluate_;
};

// A text that Python holds: where it is from, and the names around it.
struct HeldText {
  std::string text, file;
  nb::dict names;
  nb::callable evaluate;
  std::map<std::string, std::string> aliases;
  bool indented = false;
};

// lathe.script.tir.macro keeps the definition's text, and whether it is hygienic, with the object that the callee
// names.
std::optional<script::HostMacro> PythonHost::macro(std::string_view callee) {
  const bool dotted = callee.find('.') != std::string_view::npos;
  const std::string root(callee.substr(0, callee.find('.')));
  if (!names_.contains(nb::cast(root))) return std::nullopt;
  nb::object found = nb::borrow(names_[nb::cast(root)]);
  if (dotted) {
    try {
      found = evaluate_(nb::cast(std::string(callee)), nb::dict());
    } catch (nb::python_error&) {
      return std::nullopt;  // what it is says so when it is evaluated
    }
  }
  if (!nb::hasattr(found, "__lathe_macro__")) return std::nullopt;
  const auto& [held, hygienic] = nb::cast<std::pair<HeldText, bool>>(nb::object(found.attr("__lathe_macro__")));
  return script::HostMacro{.text = {held.file, held.text},
                           .indented = held.indented,
                           .hygienic = hygienic,
                           .host = std::make_shared<PythonHost>(held.names, held.evaluate),
                           .aliases = held.aliases};
}

template <class Read>
ir::IRModule read_held(const HeldText& held, bool check, Read&& read) {
  PythonHost host(held.names, held.evaluate);
  script::ParseOptions options;
  options.host = &host;
  for (const auto& [name, path] : held.aliases) options.aliases[name] = path;
  options.indented = held.indented;
  ir::IRModule module = unwrap(read(support::SourceText{held.file, held.text}, options));
  if (!check) return module;
  if (const support::Diagnostics found = driver::verify_module(module, {}); !found.empty()) raise(found);
  return module;
}

ir::IRModule parse_script(const HeldText& held, bool check) {
  const auto graph = relax::script_dialect(ops::default_operators());
  const script::Dialect* dialects[] = {&tir::script_dialect(), graph.get()};
  return read_held(held, check, [&](support::SourceText text, const script::ParseOptions& options) {
    return script::parse(std::move(text), dialects, options);
  });
}

// `parameters` are pairs of a name and either a dtype, or a shape and a dtype.
ir::IRModule loops_from_python(const HeldText& held, const nb::list& parameters) {
  std::vector<te::ParameterSpec> specs;
  for (nb::handle parameter : parameters) {
    te::ParameterSpec& spec = specs.emplace_back();
    spec.name = utf8_of(nb::object(parameter[0]));
    spec.dtype = dtype_named(utf8_of(nb::object(parameter[2])));
    const nb::object shape = parameter[1];
    if (shape.is_none()) continue;
    auto& dims = spec.shape.emplace();
    for (nb::handle dim : shape) {
      if (nb::isinstance<nb::str>(dim))
        dims.emplace_back(utf8_of(dim));
      else
        dims.emplace_back(nb::cast<int64_t>(dim));
    }
  }
  return read_held(held, true, [&](support::SourceText text, const script::ParseOptions& options) {
    return te::from_python(std::move(text), specs, options);
  });
}

nb::object evaluate_script(const std::string& text, const nb::dict& names) {
  std::map<std::string, Value> values;
  for (const auto& [name, object] : names) values[utf8_of(name)] = value_or_throw(object);
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
  nb::class_<HeldText>(m, "HeldText", "A text, and the names that Python has around it.")
      .def(
          "__init__",
          [](HeldText* self, const std::string& text, const std::string& file, nb::dict names, nb::callable evaluate,
             const std::map<std::string, std::string>& aliases, bool indented) {
            new (self) HeldText{text, file, std::move(names), std::move(evaluate), aliases, indented};
          },
          nb::arg("text"), nb::arg("file"), nb::arg("names"), nb::arg("evaluate"), nb::arg("aliases"),
          nb::arg("indented"));
  m.def("parse_script", parse_script, nb::arg("text"), nb::arg("check_well_formed"), "The program of a text.");
  m.def("loops_from_python", loops_from_python, nb::arg("text"), nb::arg("parameters"),
        "The tensor function that a plain Python function of loops is.");
  m.def("evaluate_script", evaluate_script, nb::arg("text"), nb::arg("names"),
        "One expression of the vocabulary of T, with the values of its names.");
  m.def("intrinsics", intrinsic_rows, "Each scalar function of T: its name, its arity, its meaning.");
}

}  // namespace lathe::python
