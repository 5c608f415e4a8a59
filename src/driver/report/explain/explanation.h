// What became of a model, for people: its graph before and after, each kernel's programs, schedule and code, what was
// declined and why, the memory plan, and where the time of its runs went. As JSON, as a page, and as a timeline.
#pragma once

#include "driver/compile.h"
#include "driver/report/machine.h"
#include "driver/report/work.h"

namespace lathe::driver {

// One instruction of the register program over so many runs, in the program's order.
struct InstructionTime {
  std::string name, node;  // the kernel, or the instruction between kernels, and the model's node
  uint64_t calls = 0, nanoseconds = 0;
};
struct MeasuredRuns {
  std::vector<ir::TensorData> inputs;
  std::vector<InstructionTime> instructions;
  uint64_t runs = 0;
  int threads = 0;
  MachineLimits machine;
};

class Explanation {
 public:
  // `module` is the program as it was read, `name` the file's.
  Explanation(std::string name, ir::IRModule module);
  // Give to CompileOptions::on_change; needs the program as it is before and after some rows.
  std::function<void(const std::string&, const ir::IRModule&)> watch();
  // Without runs the page has no times.
  support::Status finish(const CompiledModel& model, const CompileOptions& options,
                         const std::optional<MeasuredRuns>& runs);

  const std::string& json() const { return json_; }
  // A page of HTML by itself, that shows the JSON.
  std::string page() const;
  // The average run as trace events (the format that Perfetto and chrome://tracing open); empty without runs.
  const std::string& timeline() const { return timeline_; }

 private:
  std::string name_;
  ir::IRModule imported_, scheduled_;
  WorkReport work_;
  std::string json_, timeline_;
};

// What the assembly's hottest loop holds: the innermost one with most vector arithmetic.
struct LoopCode {
  int instructions = 0, arithmetic = 0, loads = 0, stores = 0, spills = 0;
  int vector_registers = 0;  // different ones that are named
};
struct CodeShape {
  int instructions = 0, spills = 0;
  std::optional<LoopCode> inner;
};
// Of assembly as LLVM prints it, with its comments, for x86-64 (AT&T syntax) or AArch64.
CodeShape shape_of_assembly(std::string_view text);

}  // namespace lathe::driver
