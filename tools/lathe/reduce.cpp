// lathe reduce: a failing model or script made as small as the failure allows.
#include "driver/reduce/reduce.h"

#include "command.h"

namespace lathe::tool {
namespace {

struct Options {
  std::string model, command, saying, output;
  double timeout = 120;
  int attempts = 5000;
  bool quiet = false;
};

// model.onnx becomes model.reduced.onnx.
std::string reduced_name(const std::string& path) {
  const std::filesystem::path given(path);
  return (given.parent_path() / (given.stem().string() + ".reduced" + given.extension().string())).string();
}

void run(const Options& o) {
  driver::ReduceOptions options{.command = o.command,
                                .saying = o.saying,
                                .most_attempts = o.attempts,
                                .timeout = o.timeout,
                                .output = o.output.empty() ? reduced_name(o.model) : o.output,
                                .cancelled = is_interrupted};
  driver::Reduced made;
  {
    Progress progress(o.quiet);
    options.on_progress = [&](const std::string& what) { progress(what, 0); };
    made = driver::reduce(o.model, options).value_or_throw();
  }
  std::printf("%s\nfailure: %s\n%s -> %s, %d edits kept of %d tried\n", options.output.c_str(), made.failure.c_str(),
              made.before.c_str(), made.after.c_str(), made.kept, made.attempts);
}

}  // namespace

void add_reduce(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("reduce", "Shrink a failing model or script to what the failure needs");
  sub->add_option("model", o->model, "The model: .onnx, or a script (.relax, .tir, .py)")->required();
  sub->add_option("--check", o->command,
                  "The command that fails on it, for the shell; {model} stands for the file, which is added where it "
                  "does not occur. What is smaller is kept while the exit code and the first line stay as they are")
      ->required();
  sub->add_option("-o,--output", o->output, "Where the smallest goes (beside the model: model.reduced.onnx)");
  sub->add_option("--saying", o->saying, "The output must hold this text, whatever its first line says");
  sub->add_option("--timeout", o->timeout, "Seconds for one run of the command")->capture_default_str();
  sub->add_option("--attempts", o->attempts, "Runs of the command at most")->capture_default_str();
  sub->add_flag("-q,--quiet", o->quiet, "No progress line");
  sub->footer("Example:\n  lathe reduce model.onnx --check \"lathe verify {model}\"");
  sub->callback([o] { run(*o); });
}

}  // namespace lathe::tool
