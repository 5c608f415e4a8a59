// compile(): a model's relax program becomes kernels and a register program, by the rows of driver/pipeline.
#pragma once

#include <chrono>

#include "codegen/llvm/compile.h"
#include "codegen/llvm/program/compile_program.h"
#include "ir/pass.h"
#include "lower/program/write_program.h"
#include "lower/states/states.h"
#include "target/target.h"
#include "tir/intrinsics/context.h"

namespace lathe::driver {

// Builds without NDEBUG check themselves.
#ifdef NDEBUG
inline constexpr bool development_build = false;
#else
inline constexpr bool development_build = true;
#endif

struct CompileOptions {
  target::Target target;
  int compile_threads = 0;  // 0: as many as this process may use; the result does not depend on it
  std::set<std::string> disabled_passes;
  std::map<std::string, int64_t> decisions;  // answers to the schedule rules' questions: "gemm.rows"
  std::vector<lower::StateNames> states;     // inputs that a context keeps, and the outputs that they become
  bool winograd = false;                     // convolutions may become Winograd's: faster, and less exact
  std::string stop_after;                    // the last row to run
  bool runs_once = false;                    // what computes little gets code that is made quickly
  double most_operations = 0;                // of all tensor programs; 0: as many as there are
  uint64_t most_bytes = 0;                   // of the memory that `main` plans for; 0: as many as there are
  bool verify = development_build;           // check the program before and after each row
  std::string dump_folder;                   // where each changed program is written, one file a row; empty: nowhere
  std::string debug_text;                    // file or folder for the kernels' programs, for line tables; empty: none
  std::function<void(const std::string& row, const ir::IRModule&)>
      on_change;  // after each row that changed the program
  std::function<void(const std::string& stage, double fraction)> on_progress;
  std::function<bool()> cancelled;
  codegen::KernelCache* cache = nullptr;
  std::shared_ptr<const tir::Context> context;  // where the target 'interp' finds what tensorized blocks mean
  int debug = 0;  // how much is shown on standard error: the ladder of support/environment.h
};

struct RowTime {
  std::string row;
  std::chrono::nanoseconds time{};
};

// What compiling gives; immutable. `module` is the program after the last row that ran; with `stop_after` there is
// no register program and there are no kernels.
struct CompiledModel {
  target::Target target;
  ir::IRModule module;
  std::optional<lower::Program> program;
  codegen::CompiledKernels kernels;
  codegen::CompiledProgram functions;  // of the register program
  std::vector<RowTime> times;
  std::vector<ir::Remark> remarks;
};

using CompiledModelRef = std::shared_ptr<const CompiledModel>;

support::Result<CompiledModelRef> compile(ir::IRModule module, const CompileOptions& options);

}  // namespace lathe::driver
