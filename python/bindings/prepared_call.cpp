#include "prepared_call.h"

#include "driver/interrupt.h"
#include "driver/report/crash.h"
#include "driver/report/fail_on_request.h"
#include "state.h"

namespace lathe::python {

// A tensor over the object's own memory.
const DLTensor* PreparedCall::bind(nb::handle object, const std::string& what) {
  const InputTensor& bound = tensors_.emplace_back(object, what.c_str());
  if (!bound.is_in_place())
    wrong_input(
        fmt::format("'{}' cannot be bound: its elements would be copied, as those below a byte are, or of the "
                    "other byte order",
                    what));
  return &bound.tensor();
}

PreparedCall::PreparedCall(Executable& executable, const std::vector<nb::handle>& inputs, const nb::object& out,
                           const driver::Limits& limits, State* state)
    : executable_(executable), keeps_(nb::find(executable)), limits_(limits), state_(state) {
  if (state) keeps_state_ = nb::find(*state);
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs_.push_back(bind(inputs[i], executable.inputs()[i].name));
    check_rank(executable.inputs()[i], *inputs_.back());
  }
  const std::vector<Port>& ports = executable.outputs();
  nb::list arrays;
  if (nb::isinstance<nb::list>(out) || nb::isinstance<nb::tuple>(out))
    for (nb::handle each : out) arrays.append(each);
  else
    arrays.append(out);
  if (arrays.size() != ports.size())
    wrong_input(fmt::format("the model has {} outputs, {} are given to write to", ports.size(), arrays.size()));
  for (size_t i = 0; i < ports.size(); ++i) {
    outputs_.push_back(bind(arrays[i], ports[i].name));
    if (!tensors_.back().is_writable()) wrong_input(fmt::format("'{}' cannot be written to", ports[i].name));
  }
  results_ = ports.size() == 1 ? nb::object(arrays[0]) : nb::object(nb::tuple(arrays));
  context_ = state ? state->context_for(limits_) : executable_.take_context({executable_.options_.threads, limits_});
}

PreparedCall::~PreparedCall() {
  if (context_ && !state_) executable_.give_back(context_);
}

nb::object PreparedCall::run() {
  driver::fail_on_request("run");
  const auto reproducer = [&] { return executable_.reproducer_of(Executable::files_of(inputs_), limits_); };
  const driver::CrashWatch watch(reproducer);
  int32_t status = LATHE_OK;
  {
    const driver::CancelOnInterrupt interrupt(context_);
    const nb::gil_scoped_release unlocked;
    status = lathe_run_into(context_, inputs_.data(), static_cast<int32_t>(inputs_.size()), outputs_.data(),
                            static_cast<int32_t>(outputs_.size()));
  }
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  if (status == LATHE_OK) return results_;
  try {
    raise_run_failure();
  } catch (const support::InternalError& failure) {
    driver::Reproducer left = reproducer();
    left.what = failure.what();
    throw driver::ReportedFailure(driver::leave_reproducer(left));
  }
}

void bind_prepared_call(nb::module_& m) {
  nb::class_<PreparedCall>(m, "PreparedCall", "A call bound to its tensors, by Executable.prepare.")
      .def("__call__", &PreparedCall::run, "Runs the model; gives the arrays that hold the results.");
}

}  // namespace lathe::python
