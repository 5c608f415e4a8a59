// lathe opt: runs named passes on a script or a model and prints the program, or writes a model again as ONNX.
#include "codes.h"
#include "command.h"
#include "driver/evaluate.h"
#include "driver/model_file.h"
#include "driver/pipeline.h"
#include "driver/print.h"
#include "driver/report/reproducer.h"
#include "driver/rewrite/node_passes.h"
#include "driver/rewrite/rewrite_model.h"
#include "driver/verify_module.h"
#include "interchange/onnx/nodes/import_nodes.h"
#include "tir/script/numpy_text.h"

namespace lathe::tool {
namespace {

struct Options {
  std::string file, output, target = "native", emit = "script";
  std::vector<std::string> passes, dims, config;
  bool list = false, verify = false;
  // Of a model that is written.
  std::vector<std::string> inputs, outputs, renames;
  int64_t weight_levels = 0;
  bool data_file = false, no_check = false;
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

bool writes_model(const Options& o) { return std::filesystem::path(o.output).extension() == ".onnx"; }

driver::Reproducer reproducer_of(const Options& o) {
  driver::Reproducer r{.model = o.file, .arguments = {"opt", "{model}"}, .stage = "reading the file"};
  driver::append_options({o.target, o.dims}, r);
  r.arguments.insert(r.arguments.end(), {"--emit", o.emit});
  for (const std::string& option : o.config) r.arguments.insert(r.arguments.end(), {"--config", option});
  if (!o.passes.empty()) r.arguments.push_back(fmt::format("--passes={}", fmt::join(o.passes, ",")));
  if (o.verify) r.arguments.push_back("--verify");
  if (!writes_model(o)) return r;
  r.stage = "writing the model";
  if (!o.inputs.empty()) r.arguments.push_back(fmt::format("--inputs={}", fmt::join(o.inputs, ",")));
  if (!o.outputs.empty()) r.arguments.push_back(fmt::format("--outputs={}", fmt::join(o.outputs, ",")));
  for (const std::string& rename : o.renames) r.arguments.insert(r.arguments.end(), {"--rename", rename});
  if (o.weight_levels > 0) r.arguments.push_back(fmt::format("--round-weights={}", o.weight_levels));
  if (o.data_file) r.arguments.push_back("--data-file");
  if (o.no_check) r.arguments.push_back("--no-check");
  r.arguments.insert(r.arguments.end(), {"-o", "{folder}/" + std::filesystem::path(o.output).filename().string()});
  return r;
}

void print(const driver::RewriteReport& report, const Options& o) {
  for (const ir::Remark& remark : report.remarks)
    std::fprintf(stderr, "remark: %s: %s: %s\n", remark.pass.c_str(), remark.subject.c_str(), remark.text.c_str());
  const auto text = [](const driver::RewriteReport::Size& size) {
    return fmt::format("{} nodes, {:.3f} MB", size.nodes, static_cast<double>(size.bytes) / 1e6);
  };
  std::printf("%s: %s (%s: %s)\n", o.output.c_str(), text(report.after).c_str(), o.file.c_str(),
              text(report.before).c_str());
  if (o.no_check)
    std::printf("not compared with the first, as you asked\n");
  else if (report.trials == 0)
    std::printf("not compared with the first: %s\n", report.unchecked.c_str());
  else
    std::printf("outputs differ by at most %.2g of the largest value, on %d random input%s\n", report.largest_error,
                report.trials, report.trials == 1 ? "" : "s");
}

void write_model(const Options& o) {
  if (driver::is_script(o.file))
    throw support::DiagnosticError(support::Diagnostic{
        .code = codes::option, .message = "a model is written as ONNX from a model, and '" + o.file + "' is a script"});
  driver::RewriteOptions options;
  options.compile.target = target::parse_target(o.target).value_or_throw();
  options.compile.cancelled = is_interrupted;
  options.passes = o.passes.empty() ? driver::default_node_passes() : o.passes;
  if (o.passes == std::vector<std::string>{"none"}) options.passes.clear();
  options.dims = parse_dims(o.dims);
  options.inputs = o.inputs;
  options.outputs = o.outputs;
  for (const std::string& each : o.renames) options.renames.insert(split_pair("--rename", each));
  options.weight_levels = o.weight_levels;
  options.data_file = o.data_file;
  options.check = !o.no_check;
  driver::Reproducer reproducer = reproducer_of(o);
  print(
      driver::reporting(reproducer, [&] { return driver::rewrite_model(o.file, o.output, options).value_or_throw(); }),
      o);
}

void run(const Options& o) {
  if (writes_model(o) && !o.file.empty() && !o.list) return write_model(o);
  driver::CompileOptions options;
  options.target = target::parse_target(o.target).value_or_throw();
  std::vector<ir::PassRow> rows = o.emit == "nodes" ? driver::node_pipeline() : driver::pipeline(options.target);
  if (o.list) return list_passes(writes_model(o) ? driver::node_pipeline() : rows);
  if (o.emit != "nodes")
    for (ir::PassRow& row : driver::library_rows()) rows.push_back(std::move(row));
  if (o.file.empty())
    throw support::DiagnosticError(support::Diagnostic{
        .code = codes::option, .message = "opt takes a file, or --list", .help = "see `lathe opt --help`"});
  const std::vector<ir::PassRow> chosen = chosen_rows(rows, o.passes);
  ir::PassContext context;
  context.verify = o.verify || options.verify;
  context.evaluate = driver::native_evaluator(options);
  if (o.emit == "nodes") context.evaluate = driver::node_evaluator(context.evaluate);
  for (const std::string& option : o.config) {
    const auto [name, value] = split_pair("--config", option);
    if (value != "true" && value != "false")
      throw support::DiagnosticError(support::Diagnostic{
          .code = codes::option, .message = "--config takes name=true or name=false, not '" + option + "'"});
    context.config.set(name, value == "true");
  }
  driver::Reproducer reproducer = reproducer_of(o);
  context.on_time = [&](const std::string& row, std::chrono::nanoseconds) { reproducer.stage = row; };
  const std::string text = driver::reporting(reproducer, [&] {
    ir::IRModule module = o.emit == "nodes" ? onnx::import_nodes(o.file, {parse_dims(o.dims)}).value_or_throw()
                                            : driver::read_model(o.file, {parse_dims(o.dims)}).value_or_throw();
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
  CLI::App* sub = app.add_subcommand("opt", "Run passes on a script or a model, and print the program or write ONNX");
  sub->add_option("file", o->file, "A script (.relax, .tir, .py) or a model (.onnx)");
  sub->add_option("--passes", o->passes, "Passes to run, in this order: a,b,c")
      ->delimiter(',')
      ->allow_extra_args(false);
  sub->add_option(
      "-o,--output", o->output,
      "Where to write (standard output when it is not given); a name that ends in .onnx: an ONNX model made "
      "of an ONNX model, by passes over its nodes (all but drop_unused_inputs when none are named, or none)");
  sub->add_option("--emit", o->emit,
                  "script; py: the tensor programs as loops over NumPy arrays; nodes: a model's nodes as they are")
      ->check(CLI::IsMember({"script", "py", "nodes"}))
      ->capture_default_str();
  sub->add_option("--target", o->target, "What passes that choose by the machine choose for")->capture_default_str();
  sub->add_option("--dim", o->dims, dim_help)->take_all();
  sub->add_option("--config", o->config, "An option of a pass: name=true, name=false")->take_all();
  sub->add_flag("--list", o->list, "List the passes in the order of the pipeline");
  sub->add_flag("--verify", o->verify, "Check the program after each pass");
  const std::string model = "For an ONNX model that is written";
  sub->add_option("--inputs", o->inputs, "The part of the model that begins with these values: a,b")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(model);
  sub->add_option("--outputs", o->outputs, "The part of the model that gives these values: a,b")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(model);
  sub->add_option("--rename", o->renames, "Another name of a value, an input or an output: old=new")
      ->take_all()
      ->group(model);
  sub->add_option("--round-weights", o->weight_levels,
                  "Each tensor of weights takes at most so many values, so that the file compresses")
      ->check(CLI::Range(int64_t{2}, int64_t{65536}))
      ->group(model);
  sub->add_flag("--data-file", o->data_file, "Weights go into a file beside the model (over 1 GiB they always do)")
      ->group(model);
  sub->add_flag("--no-check", o->no_check, "Do not run both models on random inputs before the new one is written")
      ->group(model);
  sub->footer(
      "Examples:\n  lathe opt model.relax --passes=fold_constants,fuse_ops\n"
      "  lathe opt model.onnx -o smaller.onnx\n"
      "  lathe opt model.onnx --outputs features --passes=eliminate_dead_code -o backbone.onnx");
  sub->callback([o] { run(*o); });
}

}  // namespace lathe::tool
