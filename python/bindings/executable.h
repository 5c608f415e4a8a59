// What runs: a model just compiled, opened from an artifact, or interpreted.
#pragma once

#include "bindings.h"
#include "driver/executable.h"
#include "driver/interpreted.h"
#include "driver/report/reproducer.h"

namespace lathe::python {

// An input or output: sizes are numbers; what is not fixed has a symbol, or "" where it has no name.
struct Port {
  std::string name, dtype;
  int32_t kind = LATHE_TENSOR;  // LatheValueKind
  bool known_rank = true;
  std::vector<std::pair<int64_t, std::string>> dims;  // -1 where the size is not fixed
};

// What a caller did wrong.
[[noreturn]] void wrong_input(const std::string& message);
// What a run that failed on this thread says; an InternalError where that is no user's fault.
[[noreturn]] void raise_run_failure();
// Refuses a tensor of another rank; the runtime checks everything else, and says it as well.
void check_rank(const Port& port, const DLTensor& given);

class PreparedCall;  // prepared_call.h
class State;         // state.h

class Executable {
 public:
  // `artifact`: the file it was opened from, else empty.
  Executable(driver::ExecutableRef native, driver::CompiledModelRef compiled, driver::RunOptions options,
             std::string artifact = {});
  Executable(driver::InterpretedRef interpreted);
  // Compiled for another machine: it can be saved, and says `why` it does not run.
  Executable(driver::CompiledModelRef compiled, const driver::Signature& signature, support::Diagnostics why);
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  ~Executable();

  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  const std::vector<Port>& states() const { return states_; }
  std::map<std::string, std::string> metadata() const;
  const driver::CompiledModelRef& compiled() const { return compiled_; }

  // The outputs for tensors in the order of the inputs. The interpreter lock is given away while the model runs. A
  // model that keeps states needs one to begin with.
  nb::list run(const std::vector<nb::handle>& inputs, const std::optional<driver::Limits>& limits = {},
               State* state = nullptr);
  // As a call f(*args, **kwargs): one result as it is, several as a tuple. `limits` and `state` may be among the named
  // ones.
  nb::object call(nb::args args, nb::kwargs named);
  // The same, but the call is bound to these tensors, to run again and again; `out` may be among the named ones.
  std::unique_ptr<PreparedCall> prepare(nb::args args, nb::kwargs named);
  // Of runs that give none of their own.
  const driver::Limits& limits() const { return options_.limits; }
  void set_limits(const driver::Limits& limits) { options_.limits = limits; }
  // Ends the runs in progress, of any thread.
  void cancel();

 private:
  friend class PreparedCall;
  friend class State;
  // What a call gives: an input a port, and what is no input.
  struct Given {
    std::vector<nb::handle> inputs;
    std::optional<driver::Limits> limits;
    State* state = nullptr;
    nb::handle out;
  };
  void check_state(const State* state) const;
  Given given(const nb::args& args, const nb::kwargs& named, bool takes_out) const;
  nb::list run_native(const std::vector<nb::handle>& inputs, const driver::Limits& limits, State* state);
  nb::list run_native_values(const std::vector<nb::handle>& inputs, const driver::Limits& limits, State* state);
  // Runs in the state's context, or one that is free, without the interpreter lock; raises what it fails with.
  void in_context(const driver::Limits& limits, State* state, const std::function<int32_t(LatheContext*)>& run);
  // An input as a file for `lathe run`; without an ending there is no file (an optional without a value).
  struct InputFile {
    std::string ending;
    std::function<bool(const std::string&)> write;
  };
  static std::vector<InputFile> files_of(const std::vector<const DLTensor*>& inputs);
  // What runs these inputs again by `lathe run`.
  driver::Reproducer reproducer_of(const std::vector<InputFile>& inputs, const driver::Limits& limits) const;
  // in_context; an internal failure or a crash leaves the reproducer, whose inputs `files` makes.
  template <class Files>
  void watched_run(Files&& files, const driver::Limits& limits, State* state,
                   const std::function<int32_t(LatheContext*)>& run);
  LatheContext* take_context(const driver::RunOptions& options);
  void give_back(LatheContext* context);
  void take_ports(const driver::Signature& signature);
  nb::list trial_run(const Given& given);
  nb::list run_interpreted(const std::vector<nb::handle>& inputs);

  driver::ExecutableRef native_;
  driver::InterpretedRef interpreted_;
  driver::CompiledModelRef compiled_;  // null for an opened artifact
  support::Diagnostics why_not_;
  driver::RunOptions options_;
  std::vector<Port> inputs_, outputs_, states_;
  std::string artifact_;
  // Contexts that no caller uses; one is made for each caller at a time. Touched with the interpreter lock only, so a
  // fork never finds it half changed.
  std::vector<LatheContext*> idle_, busy_;
};

}  // namespace lathe::python
