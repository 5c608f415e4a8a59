// lathe run: a saved artifact runs on arrays from files.
#include "abi/lathe.h"
#include "arrays/values.h"
#include "codes.h"
#include "command.h"
#include "driver/executable.h"
#include "driver/interrupt.h"
#include "inputs.h"
#include "profile.h"
#include "run_function.h"
#include "run_limits.h"

namespace lathe::tool {
namespace {

struct Options {
  std::string artifact, output, function;
  std::vector<std::string> inputs, states;
  int threads = 0, repeat = 1;
  driver::Limits limits;
  bool profile = false;
  bool huge_pages = false;
};

[[noreturn]] void refuse(std::string message) {
  throw support::DiagnosticError(support::Diagnostic{.code = codes::run, .message = std::move(message)});
}

void print_profile(LatheContext* context) {
  const Profile profile = read_profile(context);
  std::printf("%6s %12s %8s  %s\n", "share", "us a call", "calls", "kernel (node)");
  for (const ProfileLine& line : profile.lines)
    std::printf("%5.1f%% %12.2f %8llu  %s\n", 100 * profile.share(line), line.microseconds_a_call(),
                static_cast<unsigned long long>(line.calls), line.title().c_str());
}

driver::Reproducer reproducer_of(const Options& o) {
  driver::Reproducer r{.model = o.artifact, .arguments = {"run", "{model}"}};
  if (!o.function.empty()) r.arguments.insert(r.arguments.end(), {"--function", o.function});
  append_inputs(o.inputs, r);
  append_inputs(o.states, r, "--state");
  if (!o.output.empty())
    r.arguments.insert(r.arguments.end(), {"-o", "{folder}/" + std::filesystem::path(o.output).filename().string()});
  append_limits(o.limits, r.arguments);
  r.arguments.insert(r.arguments.end(), {"--threads", std::to_string(o.threads), "--repeat", std::to_string(o.repeat)});
  if (o.profile) r.arguments.push_back("--profile");
  if (o.huge_pages) r.arguments.push_back("--huge-pages");
  return r;
}

void write_outputs(const std::string& path, LatheModel* model, const std::vector<driver::Value>& outputs) {
  if (path.ends_with(".npy")) {
    if (outputs.size() != 1) refuse("a .npy file holds one array and the model has several outputs; use .npz");
    if (!file_form(*outputs[0]).ends_with(".npy")) refuse("a .npy file holds one array; use .npz");
    return void(write_value(path, *outputs[0]).value_or_throw());
  }
  std::vector<std::pair<std::string, const LatheValue*>> named;
  for (size_t i = 0; i < outputs.size(); ++i)
    named.emplace_back(lathe_output(model, static_cast<int32_t>(i))->name, outputs[i].get());
  write_values(path, named).value_or_throw();
}

void run(const Options& o) {
  if (!o.function.empty()) return run_function({o.artifact, o.function, o.inputs, o.output, o.threads});
  const driver::ExecutableRef executable = driver::open(o.artifact, {o.huge_pages}).value_or_throw();
  LatheModel* model = executable->model();
  const std::vector<driver::Value> inputs = read_inputs(o.inputs, model);
  driver::Session session = driver::Session::create(executable, {o.threads, o.limits}).value_or_throw();
  if (!o.states.empty()) session.begin_with(read_states(o.states, model)).value_or_throw();
  const driver::CancelOnInterrupt interrupt(session.context());  // where Python has the signal
  const std::vector<driver::Value> outputs = session.run(inputs).value_or_throw();
  // That run touched memory for the first time; times and profile are of others.
  if (o.profile) lathe_profile(session.context(), 1);
  std::vector<double> times;
  if (o.repeat > 1 || o.profile) times = session.time(inputs, std::max(1, o.repeat)).value_or_throw();
  if (!o.output.empty()) write_outputs(o.output, model, outputs);
  for (int32_t i = 0; i < lathe_output_count(model); ++i)
    std::printf("%s\n", signature(*lathe_output(model, i)).c_str());
  if (o.repeat > 1) {
    std::sort(times.begin(), times.end());
    std::printf("time: minimum %.3f ms, median %.3f ms, maximum %.3f ms over %zu runs\n", 1e3 * times.front(),
                1e3 * times[times.size() / 2], 1e3 * times.back(), times.size());
  }
  if (o.profile) print_profile(session.context());
}

}  // namespace

void add_run(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("run", "Run a saved artifact on arrays from files");
  sub->add_option("artifact", o->artifact, "The artifact (.so)")->required();
  sub->add_option("--input", o->inputs,
                  "An input: name=file.npy; a sequence: name=list.npz; an optional without a value: name=none")
      ->take_all();
  sub->add_option("--state", o->states,
                  "What a state begins with: name=file.npy, for all states of a model or for none; they begin empty, "
                  "and every repetition begins with the same")
      ->take_all();
  sub->add_option(
      "--function", o->function,
      "A tensor function of a library: each argument by its number, 0=file.npy or 1=3, those that it writes "
      "to as well; limits, repetition and profile are of models");
  sub->add_option("-o,--output", o->output,
                  "Where the outputs go: .npz (members of a sequence y as y.0, y.1, ...), or .npy for a single array");
  sub->add_option("--threads", o->threads, "Threads (0: LATHE_NUM_THREADS, else what this process may use)");
  add_limits(*sub, o->limits);
  sub->add_flag("--huge-pages", o->huge_pages,
                "Copy the weights into huge pages, which costs memory that other processes do not share");
  sub->add_option("--repeat", o->repeat, "Run this often and print times");
  sub->add_flag("--profile", o->profile, "Print where the time of the runs goes, kernel by kernel");
  sub->footer("Example:\n  lathe run model.so --input x=image.npy -o out.npz");
  sub->callback([o] {
    driver::Reproducer reproducer = reproducer_of(*o);
    driver::reporting(reproducer, [&] {
      run(*o);
      return 0;
    });
  });
}

}  // namespace lathe::tool
