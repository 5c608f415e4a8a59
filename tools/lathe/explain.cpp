// lathe explain: what became of a model, as one page to look at.
#include "codegen/llvm/compile.h"
#include "codes.h"
#include "command.h"
#include "driver/executable.h"
#include "driver/interrupt.h"
#include "driver/model_file.h"
#include "driver/report/explain/explanation.h"
#include "driver/report/reproducer.h"
#include "inputs.h"
#include "profile.h"
#include "runtime/cpu/thread_count.h"
#include "support/environment.h"

namespace lathe::tool {
namespace {

struct Options {
  std::string model, output, timeline, target = "native";
  std::vector<std::string> decisions, dims, inputs, disabled;
  int threads = 0;
  double seconds = 1;
  bool winograd = false, no_run = false, quiet = false;
};

driver::Reproducer reproducer_of(const Options& o) {
  driver::Reproducer r{.model = o.model, .arguments = {"explain", "{model}"}, .stage = "reading the model"};
  driver::append_options({o.target, o.dims, o.disabled, o.decisions, o.winograd}, r);
  append_inputs(o.inputs, r);
  r.arguments.insert(r.arguments.end(),
                     {"--threads", std::to_string(o.threads), "--seconds", fmt::format("{}", o.seconds)});
  if (o.no_run) r.arguments.push_back("--no-run");
  r.arguments.insert(r.arguments.end(), {"-o", "{folder}/report.html"});
  return r;
}

// Runs for so long, at least five times; nothing where there is nothing to run with.
std::optional<driver::MeasuredRuns> measure(const Options& o, const driver::CompiledModelRef& compiled) {
  if (o.no_run || compiled->target.kind != "llvm") return std::nullopt;
  const driver::ExecutableRef executable = driver::load(compiled).value_or_throw();
  std::vector<ir::TensorData> inputs;
  try {
    inputs = read_or_make_inputs(o.inputs, executable->model(), parse_dims(o.dims));
  } catch (const support::DiagnosticError& error) {
    if (!o.inputs.empty()) throw;
    std::fprintf(stderr, "not run, so without times: %s\n", error.diagnostics.at(0).message.c_str());
    return std::nullopt;
  }
  driver::Session session = driver::Session::create(executable, {o.threads, {}}).value_or_throw();
  const driver::CancelOnInterrupt interrupt(session.context());
  for (int i = 0; i < 3; ++i) session.time(inputs, 1).value_or_throw();
  driver::MeasuredRuns runs{.inputs = inputs};
  runs.threads = runtime::choose_thread_count(o.threads);
  const driver::PeakProbe probe = driver::PeakProbe::create(compiled->target, runs.threads).value_or_throw();
  double peak = probe.read().value_or_throw();
  lathe_profile(session.context(), 1);
  for (double spent = 0; (runs.runs < 5 || spent < o.seconds) && !is_interrupted(); ++runs.runs)
    spent += session.time(inputs, 1).value_or_throw().front();
  peak = std::max(peak, probe.read().value_or_throw());
  runs.instructions = read_instructions(session.context());
  runs.machine = driver::measure_machine(compiled->target, runs.threads, peak).value_or_throw();
  return runs;
}

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush())
    throw support::DiagnosticError(
        support::Diagnostic{.code = codes::option, .message = "'" + path + "' cannot be written"});
}

void run(const Options& o, driver::Reproducer& reproducer) {
  driver::CompileOptions options;
  options.target = target::parse_target(o.target).value_or_throw();
  options.disabled_passes.insert(o.disabled.begin(), o.disabled.end());
  options.decisions = parse_decisions(o.decisions);
  options.winograd = o.winograd;
  options.cancelled = is_interrupted;
  ir::IRModule module = driver::read_model(o.model, {parse_dims(o.dims)}).value_or_throw();
  driver::Explanation explanation(std::filesystem::path(o.model).filename().string(), module);
  options.on_change = explanation.watch();
  Progress progress(o.quiet);
  options.on_progress = [&](const std::string& stage, double fraction) {
    reproducer.stage = stage;
    progress(stage, 0.7 * fraction);
  };
  const driver::CompiledModelRef compiled = driver::compile(std::move(module), options).value_or_throw();
  print_winograd(*compiled);
  progress("running", 0.7);
  const std::optional<driver::MeasuredRuns> runs = measure(o, compiled);
  progress("writing the report", 0.8);
  explanation.finish(*compiled, options, runs).value_or_throw();
  write(o.output, o.output.ends_with(".json") ? explanation.json() : explanation.page());
  if (!o.timeline.empty()) {
    if (!runs)
      throw support::DiagnosticError(
          support::Diagnostic{.code = codes::option, .message = "a timeline needs a run of the model"});
    write(o.timeline, explanation.timeline());
  }
  std::printf("%s: %zu kernels%s\n", o.output.c_str(), compiled->program->kernels.size(),
              runs ? fmt::format(", {} runs", runs->runs).c_str() : ", not run");
}

}  // namespace

void add_explain(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("explain", "Write a page that shows what became of a model, kernel by kernel");
  sub->add_option("model", o->model, "The model: .onnx, or a script (.relax, .tir, .py)")->required();
  sub->add_option("-o,--output", o->output, "The page (.html), or what it shows as data (.json)")->required();
  sub->add_option("--timeline", o->timeline, "Write the mean run as trace events, for ui.perfetto.dev, here too");
  sub->add_option("--target", o->target, "The target")->capture_default_str();
  sub->add_option("--dim", o->dims, dim_help)->take_all();
  sub->add_option("--input", o->inputs, "An input of the runs: name=file.npy; others are made up")->take_all();
  sub->add_option("--threads", o->threads, "Threads (0: LATHE_NUM_THREADS, else what this process may use)");
  sub->add_option("--seconds", o->seconds, "Run for so long, at least five times")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  sub->add_flag("--no-run", o->no_run, "Do not run the model: a page without times");
  sub->add_option("--disable-pass", o->disabled, "Leave a pass out")->take_all();
  sub->add_option("--decide", o->decisions, decide_help)->take_all();
  sub->add_flag("--winograd", o->winograd, winograd_help);
  sub->add_flag("-q,--quiet", o->quiet, "No progress line");
  sub->footer("Example:\n  lathe explain model.onnx --dim batch=1 --threads 1 -o report.html");
  sub->callback([o] {
    driver::Reproducer reproducer = reproducer_of(*o);
    driver::reporting(reproducer, [&] {
      run(*o, reproducer);
      return 0;
    });
  });
}

}  // namespace lathe::tool
