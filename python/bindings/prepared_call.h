// A call of a model that is bound to its tensors: running it converts nothing.
#pragma once

#include <deque>

#include "executable.h"
#include "tensors.h"

namespace lathe::python {

// Has a context of its own, or the state's; one thread runs it at a time.
class PreparedCall {
 public:
  // `out`: an array where the model has one output, else a sequence of them; a list of one is taken as well.
  PreparedCall(Executable& executable, const std::vector<nb::handle>& inputs, const nb::object& out,
               const driver::Limits& limits, State* state);
  PreparedCall(const PreparedCall&) = delete;
  PreparedCall& operator=(const PreparedCall&) = delete;
  ~PreparedCall();

  // The results: the arrays that were given, or made, as `out`.
  nb::object run();

 private:
  const DLTensor* bind(nb::handle object, const std::string& what);

  Executable& executable_;
  nb::object keeps_, keeps_state_;  // the executable, and the state if there is one
  driver::Limits limits_;
  State* const state_;
  LatheContext* context_ = nullptr;
  std::deque<InputTensor> tensors_;
  std::vector<const DLTensor*> inputs_, outputs_;
  nb::object results_;
};

void bind_prepared_call(nb::module_& m);

}  // namespace lathe::python
