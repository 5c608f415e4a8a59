#include "driver/report/debug.h"

#include "driver/compile.h"
#include "driver/pipeline.h"
#include "driver/print.h"

namespace lathe::driver {
namespace {

void show(const std::string& text) { std::fputs(text.c_str(), stderr); }

double milliseconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }

void show_code(const CompiledModel& model, codegen::EmitKind kind) {
  std::vector<codegen::Kernel> kernels;
  for (const std::string& name : model.program->kernels)
    kernels.push_back({name, model.module.find_as<tir::PrimFunc>(name)});
  const auto text = codegen::emit_llvm(kernels, model.target, {.kind = kind});
  show(text.ok() ? *text : support::render(text.diagnostics()));
}

}  // namespace

void DebugOutput::end_stage() {
  if (!stage_.empty()) show(fmt::format("{:9.3f} ms  stage {}\n", milliseconds(stage_time_), stage_));
  if (level_ == 3 && stage_program_) show(fmt::format("# after {}\n{}\n", stage_, print(*stage_program_)));
  stage_program_.reset();
  stage_time_ = {};
}

void DebugOutput::took(const std::string& row, std::chrono::nanoseconds time) {
  if (level_ < 1) return;
  if (const std::string stage(stage_of(row)); stage != stage_) {
    end_stage();
    stage_ = stage;
  }
  stage_time_ += time;
  if (level_ >= 2) show(fmt::format("{:9.3f} ms    {}\n", milliseconds(time), row));
}

void DebugOutput::changed(const std::string& row, const ir::IRModule& module) {
  if (level_ == 3) stage_program_ = module;
  if (level_ >= 4) show(fmt::format("# after {}\n{}\n", row, print(module)));
}

void DebugOutput::remarked(const ir::Remark& remark) const {
  if (level_ >= 2)
    show(fmt::format("              {}{}: {}: {}\n", remark.taken ? "taken by " : "", remark.pass, remark.subject,
                     remark.text));
}

void DebugOutput::finish(const CompiledModel& model) {
  if (level_ < 1) return;
  end_stage();
  if (level_ < 5 || !model.program || model.target.kind != "llvm") return;
  show_code(model, codegen::EmitKind::llvm_ir);
  show_code(model, codegen::EmitKind::assembly);
}

}  // namespace lathe::driver
