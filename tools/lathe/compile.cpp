// lathe compile: a model file becomes an artifact, an object, or the text of a stage.
#include "codes.h"
#include "command.h"
#include "driver/artifact/debug_text.h"
#include "driver/artifact/save.h"
#include "driver/functions.h"
#include "driver/model_file.h"
#include "driver/report/reproducer.h"
#include "support/environment.h"

namespace lathe::tool {
namespace {

struct Options {
  std::string model, output, target = "native", emit, dump_ir, stop_after, debug_text;
  std::vector<std::string> decisions, dims, disabled, states;
  int threads = 0;
  bool winograd = false, verify = false, timings = false, quiet = false, no_cache = false, debug_info = false;
};

void print_timings(const driver::CompiledModel& model) {
  std::chrono::nanoseconds total{};
  for (const driver::RowTime& row : model.times) total += row.time;
  for (const driver::RowTime& row : model.times)
    std::printf("%9.3f ms  %s\n", static_cast<double>(row.time.count()) / 1e6, row.row.c_str());
  std::printf("%9.3f ms  total\n", static_cast<double>(total.count()) / 1e6);
  if (!model.program) return;
  const lower::MemoryPlan& plan = model.program->plan;
  std::printf("memory: planned peak %lld bytes (%lld without sharing, %lld in place), weights %lld bytes\n",
              static_cast<long long>(plan.arena_bytes), static_cast<long long>(plan.unplanned_bytes),
              static_cast<long long>(plan.in_place), static_cast<long long>(model.program->weight_bytes));
}

// What reruns it. The output goes into the reproducer's folder: what the user has stays.
driver::Reproducer reproducer_of(const Options& o) {
  const std::string output = "{folder}/" + std::filesystem::path(o.output).filename().string();
  driver::Reproducer r{
      .model = o.model, .arguments = {"compile", "{model}", "-o", output}, .stage = "reading the model"};
  driver::append_options({o.target, o.dims, o.disabled, o.decisions, o.winograd, o.states}, r);
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) r.arguments.insert(r.arguments.end(), {name, value});
  };
  add("--emit", o.emit);
  add("--stop-after", o.stop_after);
  if (o.threads) add("--compile-threads", std::to_string(o.threads));
  if (o.verify) r.arguments.push_back("--verify");
  if (o.no_cache) r.arguments.push_back("--no-cache");
  if (o.debug_info || !o.debug_text.empty()) r.arguments.push_back("--debug-info");
  return r;
}

// A script of tensor functions and nothing else becomes a library of them, as lathe.build(...).export_library makes.
bool is_for_functions(const ir::IRModule& module, const driver::Form& form) {
  return form.name == "so" && module.size() > 0 && std::all_of(module.begin(), module.end(), [](const auto& entry) {
           return entry.second.template is<tir::PrimFunc>();
         });
}

void run(const Options& o) {
  const driver::Form* form =
      (o.emit.empty() ? driver::form_of_path(o.output) : driver::form_named(o.emit)).value_or_throw();
  driver::CompileOptions options;
  options.target = target::parse_target(o.target).value_or_throw();
  if (options.target.kind == "interp")
    throw support::DiagnosticError(
        support::Diagnostic{.code = codes::option,
                            .message = "the target 'interp' runs in process and has nothing to save",
                            .help = "use `lathe verify`, or lathe.compile(model, target=\"interp\") in Python"});
  options.compile_threads = o.threads;
  options.disabled_passes.insert(o.disabled.begin(), o.disabled.end());
  options.decisions = parse_decisions(o.decisions);
  options.winograd = o.winograd;
  for (const std::string& state : o.states) options.states.push_back(split_pair("--state", state));
  options.stop_after = o.stop_after.empty() ? driver::stop_row(*form) : o.stop_after;
  options.verify |= o.verify;
  options.dump_folder = o.dump_ir;
  if (o.debug_info || !o.debug_text.empty())
    options.debug_text = o.debug_text.empty() ? driver::debug_text_beside(o.output) : o.debug_text;
  const std::filesystem::path kept = codegen::kernel_cache_folder(support::read_environment().cache_dir);
  codegen::KernelCache cache(o.no_cache ? std::filesystem::path() : kept);
  options.cache = &cache;
  options.debug = support::debug_level(support::read_environment());
  options.cancelled = is_interrupted;
  driver::Reproducer reproducer = reproducer_of(o);
  Progress progress(o.quiet);
  options.on_progress = [&](const std::string& stage, double fraction) {
    reproducer.stage = stage;
    progress(stage, fraction);
  };
  const driver::CompiledModelRef model = driver::reporting(reproducer, [&]() -> driver::CompiledModelRef {
    ir::IRModule module = driver::read_model(o.model, {parse_dims(o.dims)}).value_or_throw();
    if (is_for_functions(module, *form)) {
      reproducer.stage = "reading the model";
      driver::BuiltFunctions::build(std::move(module), options).value_or_throw()->save(o.output).value_or_throw();
      return nullptr;
    }
    driver::CompiledModelRef compiled = driver::compile(std::move(module), options).value_or_throw();
    driver::save(*compiled, *form, o.output).value_or_throw();
    return compiled;
  });
  if (model) print_winograd(*model);
  if (o.timings && model) print_timings(*model);
}

std::string known_forms() {
  std::string text;
  for (const driver::Form& form : driver::forms())
    text += (text.empty() ? "" : ", ") + std::string(form.name) + " (" + std::string(form.meaning) + ")";
  return text;
}

}  // namespace

void add_compile(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("compile", "Compile a model to an artifact");
  sub->add_option("model", o->model, "The model: .onnx, or a script (.relax, .tir, .py)")->required();
  sub->add_option("-o,--output", o->output, "Where to write; the extension says what")->required();
  sub->add_option("--target", o->target,
                  "native, x86-64-v2, x86-64-v3, x86-64-v4, aarch64-linux-gnu, null, a triple with cpu and features, "
                  "or a target file")
      ->capture_default_str();
  sub->add_option("--emit", o->emit, "What to write, whatever the extension: " + known_forms());
  sub->add_option("--dim", o->dims, dim_help)->take_all();
  sub->add_option("--compile-threads", o->threads, "Threads that generate code (0: all); the result is the same");
  sub->add_option("--disable-pass", o->disabled, "Leave a pass out, or compile_program")->take_all();
  sub->add_option("--decide", o->decisions, decide_help)->take_all();
  sub->add_option("--state", o->states,
                  "Keep an input from one call to the next: input=output, which it becomes; past_*=present_* for all "
                  "that fit (docs/states.md)")
      ->take_all();
  sub->add_flag("--winograd", o->winograd, winograd_help);
  sub->add_option("--stop-after", o->stop_after, "Stop after this pass (with an IR's text as output)");
  sub->add_option("--dump-ir", o->dump_ir, "Write the program after each pass that changed it into this folder");
  sub->add_flag("-g,--debug-info", o->debug_info,
                "Write the kernels' programs beside the output (model.kernels.tir), and line tables that point there "
                "for gdb and perf");
  sub->add_option("--debug-text", o->debug_text, "The same, with the programs in this file or folder");
  sub->add_flag("--verify", o->verify, "Check the program between passes");
  sub->add_flag("--timings", o->timings, "Print the time of each pass, and the memory plan");
  sub->add_flag("--no-cache", o->no_cache, "Compile every kernel anew");
  sub->add_flag("-q,--quiet", o->quiet, "No progress line");
  sub->footer("Example:\n  lathe compile model.onnx -o model.so --target x86-64-v3 --dim batch=1");
  sub->callback([o] { run(*o); });
}

}  // namespace lathe::tool
