// What each kernel of a compiled model has to do, and by which rule it was scheduled: what a profile's times are held
// against.
#pragma once

#include "driver/compile.h"
#include "driver/report/machine.h"

namespace lathe::driver {

struct KernelWork {
  double operations = 0;  // tir::estimate_flops
  double bytes = 0;       // tir::estimate_traffic
  bool symbolic = false;  // then the figures are not of the whole
  std::string rule;       // "gemm"; empty where no rule took it
  std::string decisions;  // "lanes=16 rows=14"

  // The least seconds that a call can take, and what sets them: "compute", or the level of memory that holds the bytes.
  double limit(const MachineLimits& machine) const;
  std::string bound(const MachineLimits& machine) const;
};

// By kernel. Give `watch` to CompileOptions::on_change; `finish` after compiling.
class WorkReport {
 public:
  std::function<void(const std::string&, const ir::IRModule&)> watch();
  void finish(const CompiledModel& model);
  // Null where nothing is known of a kernel.
  const KernelWork* find(const std::string& kernel) const;
  // The kernel that it is a copy of, made behind scheduling, or itself.
  const std::string& scheduled_as(const std::string& kernel) const;
  // The seconds that the model of cost says a call takes (schedule/cost/cost.h); nothing where an extent is symbolic.
  std::optional<double> predicted(const std::string& kernel, const target::Target& target, const MachineLimits& machine,
                                  int threads) const;

 private:
  ir::IRModule scheduled_;  // before blocks are lowered
  std::map<std::string, KernelWork> kernels_;
  std::map<std::string, std::string> scheduled_as_;
};

}  // namespace lathe::driver
