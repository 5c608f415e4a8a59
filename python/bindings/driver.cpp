#include "bindings.h"
#include "driver/artifact/debug_text.h"
#include "driver/artifact/save.h"
#include "driver/codes.h"
#include "driver/compile.h"
#include "driver/model_file.h"
#include "driver/report/reproducer.h"
#include "executable.h"
#include "support/environment.h"

namespace lathe::python {
namespace {

struct CompileArguments {
  std::string target;
  driver::RunOptions run;
  int compile_threads = 0;
  std::vector<std::string> disabled_passes;
  std::string dump_folder;
  bool verify = false, use_cache = true, winograd = false;
  std::string debug_text;
  std::map<std::string, std::string> states;
};

// One for the process: what was compiled before is found again, also on disk.
codegen::KernelCache& kernel_cache() {
  static auto* cache = new codegen::KernelCache(codegen::kernel_cache_folder(support::read_environment().cache_dir));
  return *cache;
}

driver::CompileOptions options_of(const CompileArguments& a) {
  driver::CompileOptions options;
  options.target = target::parse_target(a.target).value_or_throw();
  options.compile_threads = a.compile_threads;
  options.disabled_passes.insert(a.disabled_passes.begin(), a.disabled_passes.end());
  options.winograd = a.winograd;
  options.states.assign(a.states.begin(), a.states.end());
  options.dump_folder = a.dump_folder;
  options.verify |= a.verify;
  options.debug_text = a.debug_text;
  options.debug = support::debug_level(support::read_environment());
  options.cancelled = is_interrupted;
  if (a.use_cache) options.cache = &kernel_cache();
  return options;
}

// Runs `step` without the interpreter lock. When Ctrl-C ended it, that is what is raised.
template <class Step>
auto unlocked(driver::Reproducer& reproducer, Step&& step) {
  try {
    const nb::gil_scoped_release released;
    return driver::reporting(reproducer, step);
  } catch (...) {
    throw_if_interrupted();
    throw;
  }
}

using Dims = std::map<std::string, std::string>;  // as the option --dim has them

// Where a program came from: what a failure's reproducer reads again.
struct Origin {
  std::string path, content;
  Dims dims;
};

// Options of the form name=value.
std::vector<std::string> words_of(const std::map<std::string, std::string>& pairs) {
  std::vector<std::string> words;
  for (const auto& [name, value] : pairs) words.push_back(name + "=" + value);
  return words;
}

relax::DimSizesByName parse_dims(const Dims& dims) {
  relax::DimSizesByName parsed;
  for (const auto& [name, sizes] : dims) parsed[name] = relax::parse_dim_sizes(name, sizes).value_or_throw();
  return parsed;
}

driver::Reproducer reproducer_of(const ir::IRModule& module, const CompileArguments& arguments, const Origin& origin) {
  driver::Reproducer r{.model = origin.path, .content = origin.content, .module = module};
  // The interpreters make no file; `verify` runs them.
  if (arguments.target == "interp") {
    r.arguments = {"verify", "{model}", "--without-onnxruntime"};
    driver::append_options({"native", words_of(origin.dims)}, r);
    return r;
  }
  r.arguments = {"compile", "{model}", "-o", "{folder}/model.so"};
  driver::append_options({.target = arguments.target,
                          .dims = words_of(origin.dims),
                          .disabled = arguments.disabled_passes,
                          .winograd = arguments.winograd,
                          .states = words_of(arguments.states)},
                         r);
  if (arguments.verify) r.arguments.push_back("--verify");
  return r;
}

std::unique_ptr<Executable> compile(const ir::IRModule& module, const CompileArguments& arguments,
                                    const Origin& origin) {
  driver::Reproducer reproducer = reproducer_of(module, arguments, origin);
  auto made = unlocked(reproducer, [&]() -> std::unique_ptr<Executable> {
    driver::CompileOptions options = options_of(arguments);
    options.on_progress = [&](const std::string& stage, double) { reproducer.stage = stage; };
    if (options.target.kind == "interp" && !options.states.empty())
      throw support::DiagnosticError(support::Diagnostic{
          .code = driver::codes::no_code, .message = "states are kept by compiled code; the interpreters keep none"});
    if (options.target.kind == "interp")
      return std::make_unique<Executable>(driver::Interpreted::make(module).value_or_throw());
    driver::CompiledModelRef compiled = driver::compile(module, options).value_or_throw();
    support::Result<driver::ExecutableRef> native = driver::load(compiled);
    if (!native.ok())
      return std::make_unique<Executable>(compiled, driver::signature_of(compiled->module), native.diagnostics());
    return std::make_unique<Executable>(*native, std::move(compiled), arguments.run);
  });
  throw_if_interrupted();
  return made;
}

ir::IRModule read(const std::string& path, const Dims& dims) {
  driver::Reproducer reproducer{
      .model = path, .arguments = {"compile", "{model}", "-o", "{folder}/model.so"}, .stage = "reading the model"};
  driver::append_options({"native", words_of(dims)}, reproducer);
  return unlocked(reproducer, [&] { return driver::read_model(path, {parse_dims(dims)}).value_or_throw(); });
}

ir::IRModule read_bytes(const nb::bytes& content, const std::string& name, const Dims& dims) {
  const std::string bytes(static_cast<const char*>(content.data()), content.size());
  driver::Reproducer reproducer{
      .content = bytes, .arguments = {"compile", "{model}", "-o", "{folder}/model.so"}, .stage = "reading the model"};
  driver::append_options({"native", words_of(dims)}, reproducer);
  return unlocked(reproducer,
                  [&] { return driver::read_model_bytes(bytes, name, {parse_dims(dims)}).value_or_throw(); });
}

void save(const Executable& executable, const std::string& path, const std::optional<std::string>& form) {
  if (!executable.compiled())
    raise({support::Diagnostic{.code = driver::codes::no_code,
                               .message = executable.metadata()["target"] == "interp"
                                              ? "the target 'interp' runs in process and has nothing to save"
                                              : "a loaded artifact cannot be saved again; copy its file"}});
  // Linking has nothing but the compiled program, and that is no input of any command: the folder says what failed.
  driver::Reproducer reproducer{
      .module = executable.compiled()->module, .arguments = {"opt", "{model}"}, .stage = "saving"};
  unlocked(reproducer, [&] {
    const driver::Form* chosen = (form ? driver::form_named(*form) : driver::form_of_path(path)).value_or_throw();
    driver::save(*executable.compiled(), *chosen, path).value_or_throw();
    return 0;
  });
}

}  // namespace

void bind_driver(nb::module_& m) {
  m.def("read_model", read, nb::arg("path"), nb::arg("dims"), "The program in a model file or script.");
  m.def("read_model_bytes", read_bytes, nb::arg("content"), nb::arg("name"), nb::arg("dims"),
        "The program in a serialised ONNX model.");
  m.def(
      "compile_module",
      [](const ir::IRModule& module, const std::string& target, int threads, const driver::Limits& limits,
         int compile_threads, const std::vector<std::string>& disabled_passes, const std::string& dump_folder,
         bool verify, bool use_cache, bool winograd, const std::string& debug_text,
         const std::map<std::string, std::string>& states, const std::string& path, nb::bytes content,
         const Dims& dims) {
        return compile(module,
                       {target,
                        {threads, limits},
                        compile_threads,
                        disabled_passes,
                        dump_folder,
                        verify,
                        use_cache,
                        winograd,
                        debug_text,
                        states},
                       {path, std::string(static_cast<const char*>(content.data()), content.size()), dims});
      },
      nb::arg("module"), nb::arg("target"), nb::arg("threads"), nb::arg("limits"), nb::arg("compile_threads"),
      nb::arg("disabled_passes"), nb::arg("dump_folder"), nb::arg("verify"), nb::arg("use_cache"), nb::arg("winograd"),
      nb::arg("debug_text"), nb::arg("states"), nb::arg("path"), nb::arg("content"), nb::arg("dims"),
      "Compiles and loads; path or content are the model's, read with these dims, for a reproducer.");
  m.def(
      "open_artifact",
      [](const std::string& path, int threads, const driver::Limits& limits, bool huge_pages) {
        driver::ExecutableRef native;
        {
          const nb::gil_scoped_release released;
          native = driver::open(path, {huge_pages}).value_or_throw();
        }
        return std::make_unique<Executable>(std::move(native), nullptr, driver::RunOptions{threads, limits}, path);
      },
      nb::arg("path"), nb::arg("threads"), nb::arg("limits"), nb::arg("huge_pages"), "A saved artifact.");
  m.def(
      "describe_target",
      [](const std::string& target) { return target::parse_target(target).value_or_throw().to_json(); },
      nb::arg("target"), "What a target is, as JSON.");
  m.def("debug_text_folder", driver::debug_text_folder, "Where kernels' programs go that no other place is named for.");
  m.def("save", save, nb::arg("executable"), nb::arg("path"), nb::arg("form").none(),
        "Writes a compiled model in the form that the extension or `form` names.");
}

}  // namespace lathe::python
