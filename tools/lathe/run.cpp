// lathe run: a saved artifact runs on arrays from files.
#include "abi/lathe.h"
#include "arrays/npy.h"
#include "codes.h"
#include "command.h"
#include "driver/executable.h"

namespace lathe::tool {
namespace {

struct Options {
  std::string artifact, output;
  std::vector<std::string> inputs;
  int threads = 0, repeat = 1;
  bool profile = false;
};

[[noreturn]] void refuse(std::string message) {
  throw support::DiagnosticError(support::Diagnostic{.code = codes::run, .message = std::move(message)});
}

std::string signature(const LatheValueInfo& info) {
  std::string dims;
  for (int32_t d = 0; d < info.rank; ++d) {
    const std::string symbol = info.symbols[d];
    dims += (d ? ", " : "") + (info.dims[d] >= 0 ? std::to_string(info.dims[d]) : symbol.empty() ? "?" : symbol);
  }
  return std::string(info.name) + ": " + driver::dtype_name(info.dtype) + " [" + dims + "]";
}

std::vector<ir::TensorData> read_inputs(const Options& o, LatheModel* model) {
  std::map<std::string, ir::TensorData> given;
  for (const std::string& option : o.inputs) {
    const auto [name, path] = split_pair("--input", option);
    support::Result<ir::TensorData> array = read_npy(path);
    if (!array.ok()) {
      support::Diagnostic unread = array.diagnostics()[0];
      unread.message = "input '" + name + "': " + unread.message;
      throw support::DiagnosticError(std::move(unread));
    }
    given[name] = *array;
  }
  std::vector<ir::TensorData> inputs;
  for (int32_t i = 0; i < lathe_input_count(model); ++i) {
    const LatheValueInfo& info = *lathe_input(model, i);
    const auto it = given.find(info.name);
    if (it == given.end()) refuse("the input '" + signature(info) + "' is missing; give it with --input");
    inputs.push_back(it->second);
    given.erase(it);
  }
  if (!given.empty()) refuse("the model has no input '" + given.begin()->first + "'");
  return inputs;
}

// Where the time of the runs went: a line for each kernel, or instruction between kernels, the slowest first.
void print_profile(LatheContext* context) {
  struct Line {
    std::string name, node;
    uint64_t calls = 0, nanoseconds = 0;
  };
  std::map<std::pair<std::string, std::string>, Line> lines;
  uint64_t total = 0;
  for (int32_t i = 0; i < lathe_profile_count(context); ++i) {
    LatheProfileEntry entry;
    if (lathe_profile_entry(context, i, &entry) != LATHE_OK) continue;
    Line& line = lines[{entry.name, entry.node}];
    line.name = entry.name;
    line.node = entry.node;
    line.calls += entry.calls;
    line.nanoseconds += entry.nanoseconds;
    total += entry.nanoseconds;
  }
  std::vector<Line> sorted;
  for (auto& [key, line] : lines)
    if (line.calls) sorted.push_back(std::move(line));
  std::sort(sorted.begin(), sorted.end(), [](const Line& a, const Line& b) { return a.nanoseconds > b.nanoseconds; });
  std::printf("%6s %12s %8s  %s\n", "share", "us a call", "calls", "kernel (node)");
  for (const Line& line : sorted)
    std::printf("%5.1f%% %12.2f %8llu  %s%s\n",
                100.0 * static_cast<double>(line.nanoseconds) / static_cast<double>(total),
                static_cast<double>(line.nanoseconds) / 1e3 / static_cast<double>(line.calls),
                static_cast<unsigned long long>(line.calls), line.name.c_str(),
                line.node.empty() ? "" : (" (" + line.node + ")").c_str());
}

void run(const Options& o) {
  const driver::ExecutableRef executable = driver::open(o.artifact).value_or_throw();
  LatheModel* model = executable->model();
  const std::vector<ir::TensorData> inputs = read_inputs(o, model);
  driver::Session session = driver::Session::create(executable, o.threads).value_or_throw();
  const std::vector<ir::TensorData> outputs = session.run(inputs).value_or_throw();
  // That run touched memory for the first time; times and profile are of others.
  if (o.profile) lathe_profile(session.context(), 1);
  std::vector<double> times;
  if (o.repeat > 1 || o.profile) times = session.time(inputs, std::max(1, o.repeat)).value_or_throw();
  std::vector<std::pair<std::string, ir::TensorData>> named;
  for (size_t i = 0; i < outputs.size(); ++i)
    named.emplace_back(lathe_output(model, static_cast<int32_t>(i))->name, outputs[i]);
  if (!o.output.empty()) {
    const bool single = o.output.ends_with(".npy");
    if (single && named.size() != 1) refuse("a .npy file holds one array and the model has several outputs; use .npz");
    (single ? write_npy(o.output, *named[0].second) : write_npz(o.output, named)).value_or_throw();
  }
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
  sub->add_option("--input", o->inputs, "An input: name=file.npy")->take_all();
  sub->add_option("-o,--output", o->output, "Where the outputs go: .npz, or .npy for a single one");
  sub->add_option("--threads", o->threads, "Threads (0: LATHE_NUM_THREADS, else what this process may use)");
  sub->add_option("--repeat", o->repeat, "Run this often and print times");
  sub->add_flag("--profile", o->profile, "Print where the time of the runs goes, kernel by kernel");
  sub->footer("Example:\n  lathe run model.so --input x=image.npy -o out.npz");
  sub->callback([o] { run(*o); });
}

}  // namespace lathe::tool
