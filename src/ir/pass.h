// Passes and what they run under. A pass is a free function `Result<IRModule> name(IRModule, const PassContext&)`; a
// pipeline is rows of them; one runner gives every row its switch, timer, verification, dump and reproducer.
#pragma once

#include <chrono>
#include <functional>
#include <set>

#include "ir/function.h"
#include "ir/tensor_data.h"
#include "support/result.h"

namespace lathe::ir {

// Computes a function of the module on constants: how constant folding runs. The JIT in the driver, the interpreter in
// tests. Inputs and outputs are in the order of the function's parameters, outputs last.
using Evaluator = std::function<support::Result<std::vector<TensorData>>(
    const IRModule& module, const std::string& function, const std::vector<TensorData>& inputs)>;

// What a rule, fusion or primitive says of something: why it declined it, or what it decided where it took it.
struct Remark {
  std::string pass;
  std::string subject;  // function, block or node
  std::string text;     // the reason, or the decisions: "lanes=16 rows=14"
  bool taken = false;
};

struct PassContext {
  std::set<std::string> disabled;  // rows switched off by name
  bool verify = false;             // verify the module before and after each row
  std::string stop_after;          // the name of the last row to run; empty: all
  // Called after each row that changed the module (dump-when-changed), with the row's number and name.
  std::function<void(int, const std::string&, const IRModule&)> on_change;
  std::function<void(const std::string&, std::chrono::nanoseconds)> on_time;
  std::function<void(Remark)> on_remark;
  // Returns true when the user wants to stop (Ctrl-C); polled between rows and in long loops.
  std::function<bool()> cancelled;
  int threads = 1;  // that a pass may use; what it does is the same on any number
  Evaluator evaluate;
  Attributes config;  // pass options by name, declared by the pass that reads them

  void remark(std::string pass, std::string subject, std::string reason) const {
    if (on_remark) on_remark({std::move(pass), std::move(subject), std::move(reason)});
  }
  void remark_taken(std::string pass, std::string subject, std::string decisions) const {
    if (on_remark) on_remark({std::move(pass), std::move(subject), std::move(decisions), true});
  }
};

using Pass = std::function<support::Result<IRModule>(IRModule, const PassContext&)>;

// One row of a pipeline.
struct PassRow {
  std::string name;  // one name everywhere: function, file, command line, dump, timing
  Pass run;
  std::vector<std::string> after = {};  // rows that must come earlier when present
  // Cleans up behind these: skipped where each of them ran and left every function as it was.
  std::vector<std::string> behind = {};
};

// The names of the rows that have run.
using RowsRun = std::set<std::string, std::less<>>;

// Checks a module on which these rows have run; empty when well formed.
using Verifier = std::function<support::Diagnostics(const IRModule&, const RowsRun&)>;

// Runs the rows in order, from number `first` (of 0, 1, …) on: those before it count as run.
support::Result<IRModule> run_passes(IRModule module, const std::vector<PassRow>& rows, const PassContext& context,
                                     const Verifier& verifier = {}, size_t first = 0);

}  // namespace lathe::ir
