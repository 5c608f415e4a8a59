// For tests: a written program opened in the runtime, its kernels run by tir's interpreter. One at a time.
#pragma once

#include "lower/program/write_program.h"

namespace lathe::lower::testing {

class Opened {
 public:
  Opened(const ir::IRModule& module, const Program& program);
  ~Opened();
  // Whether the runtime accepts the program; its last error says why not.
  bool is_open() const;
  // Nothing when the runtime refuses.
  std::vector<ir::TensorData> run(const std::vector<ir::TensorData>& inputs, int outputs);

 private:
  struct Runtime;
  std::unique_ptr<Runtime> runtime_;
};

}  // namespace lathe::lower::testing
