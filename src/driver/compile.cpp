#include "driver/compile.h"

#include <filesystem>
#include <fstream>
#include <future>

#include "driver/artifact/debug_text.h"
#include "driver/codes.h"
#include "driver/evaluate.h"
#include "driver/pipeline.h"
#include "driver/print.h"
#include "driver/report/debug.h"
#include "driver/report/fail_on_request.h"
#include "driver/verify_module.h"
#include "ir/codes.h"
#include "lower/plan/plan_memory.h"
#include "tir/analysis/flops.h"

namespace lathe::driver {
namespace {

using support::Result;

// One dump a row that changed the program: 07_fuse_ops.py.
std::function<void(int, const std::string&, const ir::IRModule&)> dump_into(const std::string& folder) {
  if (folder.empty()) return {};
  return [folder](int number, const std::string& row, const ir::IRModule& module) {
    std::error_code ignored;
    std::filesystem::create_directories(folder, ignored);
    std::ofstream file(std::filesystem::path(folder) / fmt::format("{:02}_{}.py", number, row));
    file << print(module);
  };
}

std::vector<codegen::Kernel> kernels_of(const ir::IRModule& module, const lower::Program& program) {
  std::vector<codegen::Kernel> kernels;
  for (const std::string& name : program.kernels) kernels.push_back({name, module.find_as<tir::PrimFunc>(name)});
  return kernels;
}

int thread_count(int asked) {
  if (asked > 0) return asked;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// The register program's functions to machine code; switched off like a pass.
const std::string compile_program_stage = "compile_program";
constexpr double little_work = 1e8;  // operations that take less time than to make better code for them

class Compilation {
 public:
  explicit Compilation(const CompileOptions& options)
      : options_(options), model_(std::make_shared<CompiledModel>()), debug_(options.debug) {
    model_->target = options.target;
    context_.disabled = options.disabled_passes;
    context_.verify = options.verify || debug_.verifies();
    context_.stop_after = options.stop_after;
    context_.cancelled = options.cancelled;
    context_.threads = thread_count(options.compile_threads);
    const auto dump = dump_into(options.dump_folder);
    if (dump || options.on_change || debug_.shows_programs())
      context_.on_change = [this, dump](int number, const std::string& row, const ir::IRModule& module) {
        if (dump) dump(number, row, module);
        if (options_.on_change) options_.on_change(row, module);
        debug_.changed(row, module);
      };
    context_.on_time = [this](const std::string& row, std::chrono::nanoseconds time) {
      model_->times.push_back({row, time});
      debug_.took(row, time);
      report(row, static_cast<double>(model_->times.size()) / static_cast<double>(rows_.size() + 3));
    };
    context_.on_remark = [this](ir::Remark remark) {
      debug_.remarked(remark);
      model_->remarks.push_back(std::move(remark));
    };
    context_.evaluate = native_evaluator(options);
    context_.config = pass_config(options.decisions, options.winograd);
    rows_ = pipeline(options.target, options.decisions, Schedules::believed);
    if (options.most_operations > 0 || options.most_bytes > 0 || options.runs_once) bound_run();
  }

  Result<CompiledModelRef> run(ir::IRModule module) {
    if (const auto unknown = unknown_row(); !unknown.empty())
      return support::Diagnostic{.code = codes::unknown_pass,
                                 .message = "there is no pass '" + unknown + "'",
                                 .help = "`lathe opt --list` names them"};
    model_->module = TRY(kernels(TRY(lower::keep_states(std::move(module), options_.states))));
    if (!options_.stop_after.empty()) return finished();
    TRY(timed("write_program", [&]() -> support::Status {
      model_->program = TRY(lower::write_program(model_->module));
      return support::success();
    }));
    if (options_.target.kind == "llvm") TRY(generate_code());
    return finished();
  }

 private:
  // Nearly every schedule lowers, and to try each takes as long as to lower it. Where one does not, the rows from there
  // on run again, with each tried.
  Result<ir::IRModule> kernels(ir::IRModule module) {
    const auto row =
        std::find_if(rows_.begin(), rows_.end(), [](const auto& r) { return r.name == "schedule_functions"; });
    ir::IRModule before;
    bool believed = false;
    size_t remarks = 0, times = 0;
    row->run = [&, schedule = row->run](ir::IRModule programs, const ir::PassContext& context) {
      before = programs;
      remarks = model_->remarks.size();
      times = model_->times.size();
      Result<ir::IRModule> scheduled = schedule(std::move(programs), context);
      believed = scheduled.ok();
      return scheduled;
    };
    Result<ir::IRModule> lowered = ir::run_passes(std::move(module), rows_, context_, verify_module);
    if (lowered.ok() || !believed || lowered.diagnostics()[0].code == ir::codes::cancelled) return lowered;
    const std::chrono::nanoseconds scheduling = model_->times.at(times).time;
    model_->remarks.resize(remarks);
    model_->times.resize(times);
    row->run = default_schedule(options_.target, options_.decisions, Schedules::tried);
    lowered = ir::run_passes(before, rows_, context_, verify_module, static_cast<size_t>(row - rows_.begin()));
    if (model_->times.size() > times) model_->times[times].time += scheduling;
    return lowered;
  }

  // Kernels are often few: the program is compiled beside them where there is a second thread.
  support::Status generate_code() {
    const int threads = thread_count(options_.compile_threads);
    std::future<Result<codegen::CompiledProgram>> functions;
    const bool quickly = options_.runs_once && operations_ <= little_work;
    if (!quickly && !options_.disabled_passes.count(compile_program_stage))
      functions = std::async(threads > 1 ? std::launch::async : std::launch::deferred, [this] {
        return codegen::compile_program(model_->program->view(), options_.target,
                                        {.cache = options_.cache, .debug_frames = !options_.debug_text.empty()});
      });
    TRY(timed("generate_code", [&]() -> support::Status {
      TRY(nothing_registered(model_->module));
      const std::vector<codegen::Kernel> kernels = kernels_of(model_->module, *model_->program);
      const auto text = TRY(write_debug_text(kernels, options_.debug_text));
      const codegen::CompileOptions codegen{.threads = threads,
                                            .cache = options_.cache,
                                            .cancelled = options_.cancelled,
                                            .most_full = quickly ? 0 : codegen::CompileOptions().most_full,
                                            .text = text ? &*text : nullptr};
      model_->kernels = TRY(codegen::compile_kernels(kernels, options_.target, codegen));
      return support::success();
    }));
    if (!functions.valid()) return support::success();
    return timed(compile_program_stage, [&]() -> support::Status {
      model_->functions = TRY(functions.get());
      return support::success();
    });
  }

  CompiledModelRef finished() {
    debug_.finish(*model_);
    return model_;
  }

  std::string unknown_row() const {
    std::set<std::string> names = {compile_program_stage};
    for (const ir::PassRow& row : rows_) names.insert(row.name);
    for (const std::string& name : options_.disabled_passes)
      if (!names.count(name)) return name;
    return options_.stop_after.empty() || names.count(options_.stop_after) ? "" : options_.stop_after;
  }

  // What tensor functions mean before they are scheduled is what they have to do, and where values lie is known as
  // well.
  void bound_run() {
    const auto row = std::find_if(rows_.begin(), rows_.end(), [](const auto& r) { return r.name == "legalize"; });
    row->run = [this, run = row->run](ir::IRModule module, const ir::PassContext& context) -> Result<ir::IRModule> {
      module = TRY(run(std::move(module), context));
      operations_ = operations_of(module);
      if (options_.most_operations > 0) TRY(few_operations());
      if (options_.most_bytes > 0) TRY(little_memory(module));
      return module;
    };
  }

  static double operations_of(const ir::IRModule& module) {
    double operations = 0;
    for (const auto& [name, base] : module)
      if (const auto* function = base.as<tir::PrimFunc>()) operations += tir::estimate_flops(function->body);
    return operations;
  }

  support::Status few_operations() const {
    if (operations_ <= options_.most_operations) return support::success();
    return support::Diagnostic{
        .code = ir::codes::evaluation_limit,
        .message = fmt::format("it takes {:.2g} operations, more than {:.2g}", operations_, options_.most_operations)};
  }

  support::Status little_memory(const ir::IRModule& module) const {
    const auto planned =
        static_cast<uint64_t>(lower::plan_memory(module, module.find_as<relax::FunctionNode>("main")).arena_bytes);
    if (planned <= options_.most_bytes) return support::success();
    return support::Diagnostic{
        .code = ir::codes::evaluation_limit,
        .message = fmt::format("it takes {} bytes of memory, more than {}", planned, options_.most_bytes)};
  }

  void report(const std::string& stage, double fraction) const {
    if (options_.on_progress) options_.on_progress(stage, fraction);
  }

  template <class Step>
  support::Status timed(const std::string& name, Step&& step) {
    const auto start = std::chrono::steady_clock::now();
    fail_on_request(name);
    support::Status status = step();
    context_.on_time(name, std::chrono::steady_clock::now() - start);
    return status;
  }

  const CompileOptions& options_;
  std::shared_ptr<CompiledModel> model_;
  DebugOutput debug_;
  ir::PassContext context_;
  std::vector<ir::PassRow> rows_;
  double operations_ = 0;  // of all tensor programs, where a bound or the effort depends on it
};

}  // namespace

Result<CompiledModelRef> compile(ir::IRModule module, const CompileOptions& options) {
  return support::catch_diagnostics([&] { return Compilation(options).run(std::move(module)); });
}

}  // namespace lathe::driver
