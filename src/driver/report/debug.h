// What LATHE_DEBUG shows of a compile on standard error: the ladder that support/environment.h lists.
#pragma once

#include <chrono>

#include "ir/pass.h"

namespace lathe::driver {

struct CompiledModel;

class DebugOutput {
 public:
  explicit DebugOutput(int level) : level_(level) {}

  bool verifies() const { return level_ >= 4; }
  bool shows_programs() const { return level_ >= 3; }
  void took(const std::string& row, std::chrono::nanoseconds time);
  void changed(const std::string& row, const ir::IRModule& module);
  void remarked(const ir::Remark& remark) const;
  // The end of the last stage, and the target's own code.
  void finish(const CompiledModel& model);

 private:
  void end_stage();

  int level_;
  std::string stage_;
  std::chrono::nanoseconds stage_time_{};
  std::optional<ir::IRModule> stage_program_;  // where the stage changed it
};

}  // namespace lathe::driver
