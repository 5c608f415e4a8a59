// lathe opt: runs named passes on a script or a model and prints the program.
#include "codes.h"
#include "command.h"
#include "driver/evaluate.h"
#include "driver/model_file.h"
#include "driver/pipeline.h"
#include "driver/print.h"
#include "driver/report/reproducer.h"
#include "driver/verify_module.h"
#include "tir/script/numpy_text.h"

namespace lathe::tool {
namespace {

struct Options {
  std::string file, output, target = "native", emit = "script";
  std::vector<std::string> passes, dims;
  bool list = false, verify = false;
};

void list_passes(const std::vector<ir::PassRow>& rows) {
  for (const ir::PassRow& row : rows) std::printf("%s\n", row.name.c_str());
}

// The rows named, in the order they are named in.
std::vector<ir::PassRow> chosen_rows(const std::vector<ir::PassRow>& rows, const std::vector<std::string>& names) {
  std::vector<ir::PassRow> chosen;
  for (const std::string& name : names) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const ir::PassRow& r) { return r.name == name; });
    if (row == rows.end())
      throw support::DiagnosticError(support::Diagnostic{.code = codes::option,
                                                         .message = "there is no pass '" + name + "'",
                                                         .help = "`lathe opt --list` names them"});
    chosen.push_back(*row);
    chosen.back().after.clear();  // the user's order
  }
  return chosen;
}

driver::Reproducer reproducer_of(const Options& o) {
  driver::Reproducer r{.model = o.file, .arguments = {"opt", "{model}"}, .stage = "reading the file"};
  driver::append_options({o.target, o.dims}, r);
  r.arguments.insert(r.arguments.end(), {"--emit", o.emit});
  if (!o.passes.empty()) r.arguments.push_back(fmt::format("--passes={}", fmt::join(o.passes, ",")));
  if (o.verify) r.arguments.push_back("--verify");
  return r;
}

void run(const Options& o) {
  driver::CompileOptions options;
  options.target = target::parse_target(o.target).value_or_throw();
  const std::vector<ir::PassRow> rows = driver::pipeline(options.target);
  if (o.list) return list_passes(rows);
  if (o.file.empty())
    throw support::DiagnosticError(support::Diagnostic{
        .code = codes::option, .message = "opt takes a file, or --list", .help = "see `lathe opt --help`"});
  const std::vector<ir::PassRow> chosen = chosen_rows(rows, o.passes);
  ir::PassContext context;
  context.verify = o.verify || options.verify;
  context.evaluate = driver::native_evaluator(options);
  driver::Reproducer reproducer = reproducer_of(o);
  context.on_time = [&](const std::string& row, std::chrono::nanoseconds) { reproducer.stage = row; };
  const std::string text = driver::reporting(reproducer, [&] {
    ir::IRModule module = driver::read_model(o.file, {parse_dims(o.dims)}).value_or_throw();
    module = ir::run_passes(std::move(module), chosen, context, driver::verify_module).value_or_throw();
    return o.emit == "py" ? tir::numpy_text(module).value_or_throw() : driver::print(module);
  });
  if (o.output.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  std::ofstream file(o.output, std::ios::binary);
  file << text;
  if (!file.flush())
    throw support::DiagnosticError(
        support::Diagnostic{.code = codes::option, .message = "'" + o.output + "' cannot be written"});
}

}  // namespace

void add_opt(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("opt", "Run passes on a script or a model, and print the program");
  sub->add_option("file", o->file, "A script (.relax, .tir, .py) or a model (.onnx)");
  sub->add_option("--passes", o->passes, "Passes to run, in this order: a,b,c")
      ->delimiter(',')
      ->allow_extra_args(false);
  sub->add_option("-o,--output", o->output, "Where to write (standard output when it is not given)");
  sub->add_option("--emit", o->emit, "script, or py: the tensor programs as loops over NumPy arrays")
      ->check(CLI::IsMember({"script", "py"}))
      ->capture_default_str();
  sub->add_option("--target", o->target, "What passes that choose by the machine choose for")->capture_default_str();
  sub->add_option("--dim", o->dims, "Fix a symbolic dimension of a model: name=size")->take_all();
  sub->add_flag("--list", o->list, "List the passes in the order of the pipeline");
  sub->add_flag("--verify", o->verify, "Check the program after each pass");
  sub->footer("Example:\n  lathe opt model.relax --passes=fold_constants,fuse_ops");
  sub->callback([o] { run(*o); });
}

}  // namespace lathe::tool
