// lathe bench: a model is compiled, loaded and timed in this process; with --profile, kernel by kernel beside the
// machine's limits.
#include "codegen/llvm/compile.h"
#include "codes.h"
#include "command.h"
#include "driver/executable.h"
#include "driver/interrupt.h"
#include "driver/model_file.h"
#include "driver/report/predictions.h"
#include "driver/report/reproducer.h"
#include "driver/report/work.h"
#include "inputs.h"
#include "profile.h"
#include "run_limits.h"
#include "runtime/cpu/thread_count.h"
#include "support/environment.h"

namespace lathe::tool {
namespace {

struct Options {
  std::string model, target = "native";
  std::vector<std::string> decisions, dims, inputs, disabled;
  int threads = 0, compile_threads = 0, runs = 0;
  double seconds = 2;
  driver::Limits limits;
  bool winograd = false, profile = false, quiet = false, no_cache = false;
};

using Clock = std::chrono::steady_clock;
double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void row(const char* name, const std::string& text) { std::printf("%-10s %s\n", name, text.c_str()); }

std::string megabytes(int64_t bytes) { return fmt::format("{:.2f} MB", static_cast<double>(bytes) / 1e6); }

// What reruns it. Inputs that are made up are the same ones every time.
driver::Reproducer reproducer_of(const Options& o) {
  driver::Reproducer r{.model = o.model, .arguments = {"bench", "{model}"}, .stage = "reading the model"};
  driver::append_options({o.target, o.dims, o.disabled, o.decisions, o.winograd}, r);
  append_inputs(o.inputs, r);
  append_limits(o.limits, r.arguments);
  r.arguments.insert(r.arguments.end(), {"--threads", std::to_string(o.threads), "--runs", std::to_string(o.runs),
                                         "--seconds", fmt::format("{}", o.seconds)});
  if (o.profile) r.arguments.push_back("--profile");
  if (o.no_cache) r.arguments.push_back("--no-cache");
  return r;
}

driver::CompiledModelRef compile(const Options& o, driver::WorkReport& work, driver::Reproducer& reproducer) {
  driver::CompileOptions options;
  options.target = target::parse_target(o.target).value_or_throw();
  if (options.target.kind != "llvm")
    throw support::DiagnosticError(support::Diagnostic{
        .code = codes::option, .message = "a model compiled for '" + o.target + "' has no times on this machine"});
  options.compile_threads = o.compile_threads;
  options.disabled_passes.insert(o.disabled.begin(), o.disabled.end());
  options.decisions = parse_decisions(o.decisions);
  options.winograd = o.winograd;
  options.verify = false;  // its time would count as the compiler's
  const std::filesystem::path kept = codegen::kernel_cache_folder(support::read_environment().cache_dir);
  codegen::KernelCache cache(o.no_cache ? std::filesystem::path() : kept);
  options.cache = &cache;
  options.debug = support::debug_level(support::read_environment());
  options.cancelled = is_interrupted;
  if (o.profile) options.on_change = work.watch();
  Progress progress(o.quiet);
  options.on_progress = [&](const std::string& stage, double fraction) {
    reproducer.stage = stage;
    progress(stage, fraction);
  };
  ir::IRModule module = driver::read_model(o.model, {parse_dims(o.dims)}).value_or_throw();
  driver::CompiledModelRef compiled = driver::compile(std::move(module), options).value_or_throw();
  work.finish(*compiled);
  print_winograd(*compiled);
  return compiled;
}

// Runs until the time is up, at least five times; or as often as was asked for.
struct Clocked {
  Clocked(const Options& o, driver::Session& session, const std::vector<ir::TensorData>& inputs)
      : options(o), session(session), inputs(inputs) {}
  const Options& options;
  driver::Session& session;
  const std::vector<ir::TensorData>& inputs;
  Clock::time_point start = Clock::now();
  std::vector<double> times;

  bool is_enough() const {
    if (is_interrupted()) return true;
    if (options.runs > 0) return times.size() >= static_cast<size_t>(options.runs);
    return times.size() >= 5 && milliseconds_since(start) >= 1e3 * options.seconds;
  }
  void run() { times.push_back(session.time(inputs, 1).value_or_throw().front()); }
};

std::vector<double> time_runs(Clocked clocked) {
  while (!clocked.is_enough()) clocked.run();
  std::sort(clocked.times.begin(), clocked.times.end());
  return clocked.times;
}

struct Profiled {
  Profile profile;
  double peak = 0;  // the best reading of the probe
  size_t runs = 0, kept = 0;
};

// Profiles stretches of runs of a tenth of a second, and keeps those between two readings of the probe that are nearly
// the best: the times are then those of a machine as fast as its limits say. Keeps all where none is so.
Profiled profile_runs(Clocked clocked, const driver::PeakProbe& probe) {
  struct Stretch {
    Profile profile;
    double peak;  // the lower of the readings around it
    size_t runs;
  };
  constexpr double nearly = 0.95;
  std::vector<Stretch> stretches;
  Profiled result;
  LatheContext* context = clocked.session.context();
  lathe_profile(context, 1);
  double before = probe.read().value_or_throw();
  while (!clocked.is_enough()) {
    lathe_profile_reset(context);
    const size_t first = clocked.times.size();
    const Clock::time_point start = Clock::now();
    do clocked.run();
    while (!clocked.is_enough() && milliseconds_since(start) < 100);
    const double after = probe.read().value_or_throw();
    stretches.push_back({read_profile(context), std::min(before, after), clocked.times.size() - first});
    result.peak = std::max({result.peak, before, after});
    before = after;
  }
  lathe_profile(context, 0);
  const auto keep = [&](const Stretch& stretch) { return stretch.peak >= nearly * result.peak; };
  const bool any = std::any_of(stretches.begin(), stretches.end(), keep);
  for (const Stretch& stretch : stretches) {
    result.runs += stretch.runs;
    if (any && !keep(stretch)) continue;
    result.kept += stretch.runs;
    add(result.profile, stretch.profile);
  }
  if (!any) std::fputs("the machine's speed changed all the time: shares of limits are too low\n", stderr);
  return result;
}

void print_machine(const driver::MachineLimits& machine) {
  std::string levels;
  for (const driver::MemoryLevel& level : machine.levels)
    levels += fmt::format(", {} {:.0f} GB/s", level.name, level.bytes_per_second / 1e9);
  row("machine", fmt::format("{:.0f} GFLOP/s of float32{}", machine.operations_per_second / 1e9, levels));
}

void print_predictions(const std::vector<driver::Prediction>& predictions) {
  const auto found = driver::rank_correlations(predictions);
  if (found.empty()) return;
  std::printf("predicted against measured, rank correlation and mean ratio:");
  for (const driver::RankCorrelation& one : found)
    std::printf("%s %s %.2f of %zu, %.2f", &one == &found.front() ? "" : ";", one.rule.c_str(), one.value, one.kernels,
                one.ratio);
  std::printf("\n");
}

void print_profile(const Profile& profile, const driver::WorkReport& report, const target::Target& target,
                   const driver::MachineLimits& machine, int threads, size_t runs, int64_t unknown_runs) {
  std::printf("\n%6s %11s %6s %10s %10s %9s %6s %-8s %9s %s\n", "share", "us a call", "calls", "MFLOP", "KB",
              "limit us", "of it", "bound", "predicted", "kernel (node): rule and decisions");
  double limits = 0;
  std::vector<driver::Prediction> predictions;
  for (const ProfileLine& line : profile.lines) {
    const driver::KernelWork* work = report.find(line.name, line.node);
    const double us = line.microseconds_a_call();
    std::printf("%5.1f%% %11.2f %6llu ", 100 * profile.share(line), us,
                static_cast<unsigned long long>(line.calls / runs));
    if (!work) {
      std::printf("%10s %10s %9s %6s %-8s %9s %s\n", "", "", "", "", "", "", line.title().c_str());
      continue;
    }
    const double limit = 1e6 * work->limit(machine);
    if (!work->symbolic) limits += limit * static_cast<double>(line.calls) / static_cast<double>(runs);
    if (work->symbolic)
      std::printf("%10s %10s %9s %6s %-8s", "?", "?", "?", "", "");
    else
      std::printf("%10.3f %10.1f %9.2f %5.0f%% %-8s", work->operations / 1e6, work->bytes / 1e3, limit,
                  100 * limit / us, work->bound(machine).c_str());
    const auto predicted = report.predicted(line.name, line.node, target, machine, threads);
    if (predicted) predictions.push_back({work->rule.empty() ? "no rule" : work->rule, 1e6 * *predicted, us});
    std::printf(" %9s", predicted ? fmt::format("{:.2f}", 1e6 * *predicted).c_str() : "?");
    std::printf(" %s: %s%s\n", line.title().c_str(), work->rule.empty() ? "no rule" : work->rule.c_str(),
                work->decisions.empty() ? "" : (" " + work->decisions).c_str());
  }
  const double total = static_cast<double>(profile.nanoseconds) / 1e3 / static_cast<double>(runs);
  std::printf("a run of %.1f us; the kernels' limits add up to %.1f us, %.0f%% of it\n", total, limits,
              100 * limits / total);
  print_predictions(predictions);
  if (unknown_runs) std::printf("kernels of sizes that only the run computes have no limit\n");
}

void run(const Options& o, driver::Reproducer& reproducer) {
  driver::WorkReport work;
  Clock::time_point start = Clock::now();
  const driver::CompiledModelRef compiled = compile(o, work, reproducer);
  row("compile", fmt::format("{:.1f} ms", milliseconds_since(start)));
  start = Clock::now();
  reproducer.stage = "compiling";
  const driver::ExecutableRef executable = driver::load(compiled).value_or_throw();
  row("load", fmt::format("{:.2f} ms", milliseconds_since(start)));
  const std::vector<ir::TensorData> inputs = read_or_make_inputs(o.inputs, executable->model(), parse_dims(o.dims));
  if (o.profile) work.know_sizes(inputs);
  driver::Session session = driver::Session::create(executable, {o.threads, o.limits}).value_or_throw();
  const driver::CancelOnInterrupt interrupt(session.context());  // where Python has the signal
  row("first run", fmt::format("{:.3f} ms", 1e3 * session.time(inputs, 1).value_or_throw().front()));
  for (int i = 0; i < 3; ++i) session.time(inputs, 1).value_or_throw();
  const std::vector<double> times = time_runs({o, session, inputs});
  if (times.empty()) return;
  const int threads = runtime::choose_thread_count(o.threads);
  row("runs",
      fmt::format("minimum {:.4f} ms, median {:.4f} ms, maximum {:.4f} ms over {}, {} thread{}", 1e3 * times.front(),
                  1e3 * times[times.size() / 2], 1e3 * times.back(), times.size(), threads, threads == 1 ? "" : "s"));
  const lower::MemoryPlan& plan = compiled->program->plan;
  row("memory",
      fmt::format("planned peak {}, weights {}, {} kernels", megabytes(plan.arena_bytes),
                  megabytes(static_cast<int64_t>(compiled->program->weight_bytes)), compiled->program->kernels.size()));
  if (!o.profile) return;
  const driver::PeakProbe probe = driver::PeakProbe::create(compiled->target, threads).value_or_throw();
  const Profiled profiled = profile_runs({o, session, inputs}, probe);
  const Profile& profile = profiled.profile;
  if (profiled.kept == 0) return;
  const driver::MachineLimits machine =
      driver::measure_machine(compiled->target, threads, profiled.peak).value_or_throw();
  print_machine(machine);
  row("profile", fmt::format("{} of {} runs, those at the machine's full speed", profiled.kept, profiled.runs));
  int64_t symbolic = 0;
  for (const ProfileLine& line : profile.lines)
    if (const driver::KernelWork* known = work.find(line.name, line.node)) symbolic += known->symbolic;
  print_profile(profile, work, compiled->target, machine, threads, profiled.kept, symbolic);
}

}  // namespace

void add_bench(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("bench", "Time a model on this machine, kernel by kernel on request");
  sub->add_option("model", o->model, "The model: .onnx, or a script (.relax, .tir, .py)")->required();
  sub->add_option("--target", o->target, "A target that this machine runs")->capture_default_str();
  sub->add_option("--dim", o->dims, dim_help)->take_all();
  sub->add_option("--input", o->inputs, "An input: name=file.npy; others are made up")->take_all();
  sub->add_option("--threads", o->threads, "Threads (0: LATHE_NUM_THREADS, else what this process may use)");
  sub->add_option("--runs", o->runs, "Run this often (0: as --seconds says)")->check(CLI::NonNegativeNumber);
  sub->add_option("--seconds", o->seconds, "Run for so long, at least five times")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  add_limits(*sub, o->limits);
  sub->add_option("--compile-threads", o->compile_threads, "Threads that generate code (0: all)");
  sub->add_option("--disable-pass", o->disabled, "Leave a pass out, or compile_program")->take_all();
  sub->add_option("--decide", o->decisions, decide_help)->take_all();
  sub->add_flag("--winograd", o->winograd, winograd_help);
  sub->add_flag("--profile", o->profile,
                "Print each kernel's time, work, limit (the larger of operations over the machine's peak and of bytes "
                "over its bandwidth, both measured now) and schedule");
  sub->add_flag("--no-cache", o->no_cache, "Compile every kernel anew");
  sub->add_flag("-q,--quiet", o->quiet, "No progress line");
  sub->footer("Example:\n  lathe bench model.onnx --dim batch=1 --threads 1 --profile");
  sub->callback([o] {
    driver::Reproducer reproducer = reproducer_of(*o);
    driver::reporting(reproducer, [&] {
      run(*o, reproducer);
      return 0;
    });
  });
}

}  // namespace lathe::tool
