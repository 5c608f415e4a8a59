// What a model keeps from one call to the next: a context of its own.
#pragma once

#include "executable.h"

namespace lathe::python {

class State {
 public:
  // Empty, of a model that keeps something.
  explicit State(Executable& executable);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  const Executable& executable() const { return executable_; }
  LatheContext* context_for(const driver::Limits& limits);

  void reset();
  // Copies, by name.
  nb::dict arrays() const;
  // Arrays for all names: all of them, or none where one does not fit.
  void update(const nb::dict& arrays);
  void copy_from(const State& other);

 private:
  void set(const std::vector<const DLTensor*>& tensors);
  std::vector<DLManagedTensor*> tensors() const;

  Executable& executable_;
  nb::object keeps_;
  LatheContext* context_;
};

void bind_state(nb::module_& m);

}  // namespace lathe::python
