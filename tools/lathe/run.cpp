// lathe run: a saved artifact runs on arrays from files.
#include "abi/lathe.h"
#include "arrays/npy.h"
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
  throw support::DiagnosticError(support::Diagnostic{.code = {"tool-run"}, .message = std::move(message)});
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
    if (!array.ok()) refuse("input '" + name + "': " + array.diagnostics()[0].message);
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

void run(const Options& o) {
  const driver::ExecutableRef executable = driver::open(o.artifact).value_or_throw();
  LatheModel* model = executable->model();
  const std::vector<ir::TensorData> inputs = read_inputs(o, model);
  std::vector<ir::TensorData> outputs;
  std::vector<double> times;
  for (int i = 0; i < std::max(1, o.repeat); ++i) {
    const auto start = std::chrono::steady_clock::now();
    outputs = executable->run(inputs, o.threads).value_or_throw();
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
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
    std::printf("time: minimum %.3f ms, median %.3f ms, maximum %.3f ms over %zu runs\n", times.front(),
                times[times.size() / 2], times.back(), times.size());
  }
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
  sub->footer("Example:\n  lathe run model.so --input x=image.npy -o out.npz");
  sub->callback([o] { run(*o); });
}

}  // namespace lathe::tool
