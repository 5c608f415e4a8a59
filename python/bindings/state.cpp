#include "state.h"

#include <deque>

#include "tensors.h"

namespace lathe::python {

State::State(Executable& executable) : executable_(executable), keeps_(nb::find(executable)) {
  if (executable.states().empty()) wrong_input("the model keeps no states");
  context_ = executable.take_context({executable.options_.threads, executable.options_.limits});
  lathe_reset_states(context_);
}

State::~State() { executable_.give_back(context_); }

LatheContext* State::context_for(const driver::Limits& limits) {
  const LatheContextOptions wanted = driver::context_options({executable_.options_.threads, limits});
  if (lathe_set_limits(context_, &wanted) != LATHE_OK) raise_run_failure();
  return context_;
}

void State::reset() {
  if (lathe_reset_states(context_) != LATHE_OK) raise_run_failure();
}

std::vector<DLManagedTensor*> State::tensors() const {
  std::vector<DLManagedTensor*> all(executable_.states().size(), nullptr);
  if (lathe_get_states(context_, all.data(), static_cast<int32_t>(all.size())) != LATHE_OK) raise_run_failure();
  return all;
}

void State::set(const std::vector<const DLTensor*>& tensors) {
  if (lathe_set_states(context_, tensors.data(), static_cast<int32_t>(tensors.size())) != LATHE_OK) raise_run_failure();
}

nb::dict State::arrays() const {
  const std::vector<DLManagedTensor*> all = tensors();
  nb::dict arrays;
  for (size_t i = 0; i < all.size(); ++i) arrays[executable_.states()[i].name.c_str()] = to_numpy(all[i]);
  return arrays;
}

void State::update(const nb::dict& arrays) {
  std::deque<InputTensor> given;
  std::vector<const DLTensor*> tensors;
  for (const Port& port : executable_.states()) {
    if (!arrays.contains(port.name.c_str())) wrong_input("the state '" + port.name + "' is missing");
    tensors.push_back(&given.emplace_back(arrays[port.name.c_str()], port.name.c_str()).tensor());
  }
  for (const auto& [key, value] : arrays) {
    const auto name = nb::cast<std::string>(key);
    const std::vector<Port>& ports = executable_.states();
    if (std::none_of(ports.begin(), ports.end(), [&](const Port& port) { return port.name == name; }))
      wrong_input("the model keeps no state '" + name + "'");
  }
  set(tensors);
}

void State::copy_from(const State& other) {
  const std::vector<DLManagedTensor*> all = other.tensors();
  std::vector<const DLTensor*> views;
  for (const DLManagedTensor* each : all) views.push_back(&each->dl_tensor);
  const auto free = [&] {
    for (DLManagedTensor* each : all) each->deleter(each);
  };
  try {
    set(views);
  } catch (...) {
    free();
    throw;
  }
  free();
}

void bind_state(nb::module_& m) {
  nb::class_<State>(m, "State",
                    "What a model keeps from one call to the next (docs/states.md), by Executable.make_state. For one "
                    "caller at a time; a call that fails leaves it as it was.")
      .def("reset", &State::reset, "Empty again.")
      .def("arrays", &State::arrays, "Copies of what is kept, by the names of the model's inputs.")
      .def("update", &State::update, nb::arg("arrays"),
           "Copies of these arrays are kept from now on: a dict by name, of all states.")
      .def(
          "copy",
          [](const State& self) {
            auto copy = std::make_unique<State>(const_cast<Executable&>(self.executable()));
            copy->copy_from(self);
            return copy;
          },
          "Another that goes on from the same.");
}

}  // namespace lathe::python
