// lathe verify: the compiled model against the interpreters, and against ONNX Runtime where Python has it.
#include "command.h"
#include "driver/model_file.h"
#include "driver/report/reproducer.h"
#include "driver/verify/verify_model.h"
#include "onnxruntime.h"
#include "run_limits.h"
#include "support/environment.h"

namespace lathe::tool {
namespace {

struct Options {
  std::string model, target = "native", python = "python3";
  std::vector<std::string> dims;
  int64_t seed = 1, samples = 256;
  double whole_limit = 1e7;
  driver::Limits limits;
  bool winograd = false, quiet = false, all = false, without_onnxruntime = false, bisect = false;
};

constexpr size_t rows_shown = 40;  // without --all; those that differ are always shown

void print_report(const driver::VerifyReport& report, bool all) {
  size_t width = 8, oracle_width = 6, shown = 0;
  for (const driver::VerifyRow& row : report.rows) {
    width = std::max(width, std::min<size_t>(row.subject.size(), 56));
    oracle_width = std::max(oracle_width, row.oracle.size());
  }
  std::printf("%-*s  %-*s  %-12s  %12s  %10s  %10s\n", static_cast<int>(width), "what", static_cast<int>(oracle_width),
              "against", "dims", "elements", "error", "allowed");
  for (const driver::VerifyRow& row : report.rows) {
    if (!all && row.difference.agrees() && ++shown > rows_shown) continue;
    const driver::Difference& d = row.difference;
    std::printf("%-*.*s  %-*s  %-12s  %12lld  %10.2e  %10.2e  %s\n", static_cast<int>(width), static_cast<int>(width),
                row.subject.c_str(), static_cast<int>(oracle_width), row.oracle.c_str(), row.dims.c_str(),
                static_cast<long long>(d.compared), d.relative(), row.tolerance,
                d.agrees()            ? "ok"
                : d.complaint.empty() ? fmt::format("{} differ", d.wrong).c_str()
                                      : d.complaint.c_str());
  }
  if (!all && shown > rows_shown) std::printf("and %zu more that agree (--all shows them)\n", shown - rows_shown);
  for (const std::string& remark : report.remarks) std::printf("note: %s\n", remark.c_str());
}

void print_bisection(const driver::Bisection& bisection) {
  using Verdict = driver::SwitchedOff::Verdict;
  const driver::FirstDifference& first = bisection.first;
  if (!bisection.agrees && !first.pass.empty()) {
    std::printf("first pass that differs: %s%s%s\n", first.pass.c_str(), bisection.dims.empty() ? "" : ", with ",
                bisection.dims.c_str());
    if (!first.failure.empty()) std::printf("  it fails: %s\n", first.failure.c_str());
    if (!first.tensor.empty())
      std::printf("  first tensor that differs: %s%s, %lld of %lld elements, error %.2e\n", first.tensor.c_str(),
                  first.node.empty() ? "" : fmt::format(" (node '{}')", first.node).c_str(),
                  static_cast<long long>(first.difference.wrong), static_cast<long long>(first.difference.compared),
                  first.difference.relative());
  }
  std::printf("%-32s  %s\n", "switched off", "then");
  for (const driver::SwitchedOff& off : bisection.without) {
    // A pass without which everything agrees is to blame, or makes what the one to blame trips over.
    const char* says = off.verdict == Verdict::needed    ? "does not compile: "
                       : off.verdict == Verdict::differs ? "differs: "
                       : bisection.agrees                ? "agrees"
                                                         : "AGREES";
    std::printf("%-32s  %s%s\n", off.pass.c_str(), says, off.said.c_str());
  }
}

void against_onnxruntime(const Options& o, driver::Verification& verified) {
  if (o.without_onnxruntime || driver::is_script(o.model)) return;
  for (const driver::VerifyTrial& trial : verified.trials) {
    const auto theirs = run_onnxruntime(o.python, o.model, trial);
    if (!theirs.ok()) {
      verified.report.remarks.push_back(theirs.diagnostics()[0].message);
      show_codes(theirs.diagnostics());
      return;
    }
    for (size_t i = 0; i < trial.outputs.size(); ++i) {
      const auto& [name, ours] = trial.outputs[i];
      verified.report.rows.push_back(
          {trial.dims, name, "onnxruntime", driver::compare(*ours, *theirs->at(i)), driver::tolerance_of(ours->dtype)});
    }
  }
}

driver::Reproducer reproducer_of(const Options& o) {
  driver::Reproducer r{.model = o.model, .arguments = {"verify", "{model}"}, .stage = "reading the model"};
  driver::append_options({.target = o.target, .dims = o.dims, .winograd = o.winograd}, r);
  r.arguments.insert(r.arguments.end(), {"--seed", std::to_string(o.seed), "--samples", std::to_string(o.samples),
                                         "--whole-limit", fmt::format("{}", o.whole_limit)});
  append_limits(o.limits, r.arguments);
  if (o.bisect) r.arguments.push_back("--bisect");
  if (o.without_onnxruntime) r.arguments.push_back("--without-onnxruntime");
  return r;
}

int run(const Options& o) {
  driver::VerifyOptions options;
  options.compile.target = target::parse_target(o.target).value_or_throw();
  const std::filesystem::path kept = codegen::kernel_cache_folder(support::read_environment().cache_dir);
  codegen::KernelCache cache(kept);
  options.compile.cache = &cache;
  options.compile.debug = support::debug_level(support::read_environment());
  options.compile.cancelled = is_interrupted;
  options.compile.winograd = o.winograd;
  options.dims = parse_dims(o.dims);
  options.seed = static_cast<uint64_t>(o.seed);
  options.samples = o.samples;
  options.whole_limit = o.whole_limit;
  options.bisect = o.bisect;
  options.limits = o.limits;
  driver::Reproducer reproducer = reproducer_of(o);
  driver::Verification verified;
  {
    Progress progress(o.quiet);
    options.compile.on_progress = [&](const std::string& stage, double fraction) {
      reproducer.stage = stage;
      progress(stage, fraction);
    };
    verified = driver::reporting(reproducer, [&] {
      return driver::verify_model(
                 [&](const relax::DimSizesByName& dims) { return driver::read_model(o.model, {dims}); }, options)
          .value_or_throw();
    });
    against_onnxruntime(o, verified);
  }
  if (verified.bisection) print_bisection(*verified.bisection);
  if (verified.bisection && !verified.bisection->agrees) {
    for (const std::string& remark : verified.report.remarks) std::printf("note: %s\n", remark.c_str());
    std::fflush(stdout);
    std::fprintf(stderr, "%s: what is compiled differs from what the model means\n", o.model.c_str());
    return 1;
  }
  print_report(verified.report, o.all);
  size_t wrong = 0;
  for (const driver::VerifyRow& row : verified.report.rows) wrong += !row.difference.agrees();
  if (wrong == 0) {
    std::printf("all %zu comparisons agree\n", verified.report.rows.size());
    return 0;
  }
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %zu of %zu comparisons differ\n", o.model.c_str(), wrong, verified.report.rows.size());
  return 1;
}

}  // namespace

void add_verify(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("verify", "Compare a compiled model with the interpreters and with ONNX Runtime");
  sub->add_option("model", o->model, "The model: .onnx, or a script (.relax, .tir, .py)")->required();
  sub->add_option("--target", o->target, "A target that this machine runs")->capture_default_str();
  sub->add_option("--dim", o->dims, dim_help)->take_all();
  sub->add_option("--seed", o->seed, "Of the random inputs")->capture_default_str();
  add_limits(*sub, o->limits);
  sub->add_option("--whole-limit", o->whole_limit,
                  "Operations up to which the interpreter runs the whole model; beyond, each operator is built "
                  "unscheduled and interpreted at random elements")
      ->capture_default_str();
  sub->add_option("--samples", o->samples, "Random elements of each operator")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  sub->add_option("--python", o->python, "The Python that is asked for ONNX Runtime")->capture_default_str();
  sub->add_flag("--winograd", o->winograd, winograd_help);
  sub->add_flag("--without-onnxruntime", o->without_onnxruntime, "Do not ask for ONNX Runtime");
  sub->add_flag("--bisect", o->bisect,
                "Name the first pass after which the program computes something else, and the tensor; switch off each "
                "pass in turn");
  sub->add_flag("--all", o->all, "Show every comparison");
  sub->add_flag("-q,--quiet", o->quiet, "No progress line");
  sub->footer("Example:\n  lathe verify model.onnx --dim batch=2");
  sub->callback([o] {
    if (const int code = run(*o)) throw CLI::RuntimeError(code);
  });
}

}  // namespace lathe::tool
