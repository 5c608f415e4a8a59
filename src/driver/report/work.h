// What each kernel of a compiled model has to do, and by which rule it was scheduled: what a profile's times are held
// against.
#pragma once

#include "driver/compile.h"
#include "driver/report/machine.h"

namespace lathe::driver {

struct KernelWork {
  double operations = 0;  // tir::estimate_flops
  double bytes = 0;       // tir::estimate_traffic
  bool symbolic = false;  // sizes are not known: the figures are not of the whole
  std::string rule;       // "gemm"; empty where no rule took it
  std::string decisions;  // "lanes=16 rows=14"

  // The least seconds that a call can take, and what sets them: "compute", or the level of memory that holds the bytes.
  double limit(const MachineLimits& machine) const;
  std::string bound(const MachineLimits& machine) const;
};

// By kernel. Give `watch` to CompileOptions::on_change; `finish` after compiling; `know_sizes`, before the model runs,
// the shapes of its inputs, so that kernels of symbolic sizes have figures.
class WorkReport {
 public:
  std::function<void(const std::string&, const ir::IRModule&)> watch();
  void finish(const CompiledModel& model);
  void know_sizes(const std::vector<ir::TensorData>& inputs);
  // Null where nothing is known of a kernel. Where calls have different sizes, `node` says whose is meant; without one
  // the work is symbolic.
  const KernelWork* find(const std::string& kernel, const std::string& node = "") const;
  // The program before any of its functions was scheduled.
  const ir::IRModule& unscheduled() const { return unscheduled_; }
  // The kernel that it is a copy of, made behind scheduling, or itself.
  const std::string& scheduled_as(const std::string& kernel) const;
  // The seconds that the model of cost says a call takes (schedule/cost/cost.h); nothing where an extent is not known.
  std::optional<double> predicted(const std::string& kernel, const std::string& node, const target::Target& target,
                                  const MachineLimits& machine, int threads) const;

 private:
  // What the call of a kernel gives its scalars.
  struct Sized {
    std::vector<int64_t> scalars;
    KernelWork work;
  };
  void add_call(const std::string& kernel, const std::string& node, std::vector<int64_t> scalars);
  const Sized* sized(const std::string& kernel, const std::string& node) const;

  ir::IRModule unscheduled_;  // before any function is scheduled
  ir::IRModule scheduled_;    // before blocks are lowered
  std::map<std::string, KernelWork> kernels_;
  std::map<std::string, std::string> scheduled_as_;
  std::map<std::pair<std::string, std::string>, Sized> calls_;  // by kernel and node
};

}  // namespace lathe::driver
