// A compiled model that can run in this process: just compiled, or opened from an artifact.
#pragma once

#include "abi/lathe.h"
#include "driver/compile.h"
#include "driver/value.h"

namespace lathe::driver {

// What a run may take; 0: without a limit. A run that passes one ends with an error that names the node and the limit.
struct Limits {
  uint64_t max_memory = 0;  // bytes held at once: scratch, values and results
  uint64_t max_steps = 0;   // instructions of the register program
  double timeout = 0;       // seconds
};
struct RunOptions {
  int threads = 0;  // 0: as the environment says
  Limits limits = {};
};
struct OpenOptions {
  bool huge_pages = false;  // the weights are copied into huge pages, memory of this process alone
};
// As the runtime takes them. A timeout above 0 is at least a nanosecond.
LatheContextOptions context_options(const RunOptions& options);

class Executable {
 public:
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  ~Executable();

  // The runtime's handle, for the C interface.
  LatheModel* model() const { return model_; }
  // Runs once in a context of its own. Inputs in the order of the signature.
  support::Result<std::vector<ir::TensorData>> run(const std::vector<ir::TensorData>& inputs,
                                                   const RunOptions& options = {}) const;

 private:
  friend support::Result<std::shared_ptr<const Executable>> load(const CompiledModelRef&);
  friend support::Result<std::shared_ptr<const Executable>> open(const std::string&, const OpenOptions&);
  Executable() = default;
  std::shared_ptr<const void> keeps_;  // the code and data of a model that was just compiled
  LatheModel* model_ = nullptr;
};
using ExecutableRef = std::shared_ptr<const Executable>;

// A context in which a model runs again and again; its memory is allocated once.
class Session {
 public:
  static support::Result<Session> create(ExecutableRef executable, const RunOptions& options = {});
  support::Result<std::vector<ir::TensorData>> run(const std::vector<ir::TensorData>& inputs);
  support::Result<std::vector<Value>> run(const std::vector<Value>& inputs);
  // The states that runs of the model begin with, in the order of lathe_state, instead of empty ones.
  support::Status begin_with(std::vector<ir::TensorData> states);
  // Back to these.
  support::Status begin();
  // The seconds that each of so many runs takes, from the call to results in memory. All begin with the same states.
  support::Result<std::vector<double>> time(const std::vector<ir::TensorData>& inputs, int runs);
  support::Result<std::vector<double>> time(const std::vector<Value>& inputs, int runs);
  // The runtime's handle, for the C interface.
  LatheContext* context() const { return context_.get(); }

 private:
  Session(ExecutableRef executable, LatheContext* context)
      : executable_(std::move(executable)), context_(context, lathe_destroy_context) {}
  ExecutableRef executable_;
  std::vector<ir::TensorData> states_;
  std::unique_ptr<LatheContext, void (*)(LatheContext*)> context_;
};

// The compiled model's kernels loaded into this process.
support::Result<ExecutableRef> load(const CompiledModelRef& compiled);
// A saved artifact.
support::Result<ExecutableRef> open(const std::string& path, const OpenOptions& options = {});

// "float32", as DLPack encodes it.
std::string dtype_name(DLDataType type);
// The code of a LatheStatus that is a failure.
support::Code code_of_status(int32_t status);
// What the runtime says of the last failure on this thread, as a diagnostic. A kernel that failed without a reason is
// no user's error: an InternalError.
support::Diagnostic runtime_failure(const std::string& what);

}  // namespace lathe::driver
