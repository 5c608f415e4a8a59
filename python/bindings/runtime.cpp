#include <deque>

#include "abi/lathe.h"
#include "arrays/values.h"
#include "driver/artifact/save.h"
#include "driver/codes.h"
#include "driver/interrupt.h"
#include "driver/report/crash.h"
#include "driver/report/fail_on_request.h"
#include "executable.h"
#include "prepared_call.h"
#include "run_limits.h"
#include "state.h"
#include "tensors.h"
#include "values.h"

namespace lathe::python {
namespace {

Port port_of(const LatheValueInfo& info) {
  static constexpr const char* kinds[] = {"?", "?", "int", "tuple", "strings", "sequence", "optional"};
  const bool is_tensor = info.kind == LATHE_TENSOR;
  Port port{info.name, is_tensor ? dtype_name(info.dtype) : kinds[info.kind], info.kind, info.rank >= 0, {}};
  for (int32_t d = 0; d < info.rank; ++d) port.dims.emplace_back(info.dims[d], info.symbols[d]);
  return port;
}

Port port_of(const std::string& name, const relax::StructInfo& info) {
  const auto* tensor = info ? info.as<relax::TensorStructInfo>() : nullptr;
  Port port{name, tensor ? tensor->dtype.str() : "object", LATHE_TENSOR, tensor && tensor->shape, {}};
  if (!port.known_rank) return port;
  for (const ir::Expr& dim : *tensor->shape) {
    const auto size = ir::as_int(dim);
    const auto* symbol = dim.as<ir::VarNode>();
    port.dims.emplace_back(size ? *size : -1, symbol ? symbol->name : "");
  }
  return port;
}

std::string describe(const Port& port) {
  std::string dims;
  for (const auto& [size, symbol] : port.dims)
    dims += (dims.empty() ? "" : ", ") + (size >= 0 ? std::to_string(size) : symbol.empty() ? "?" : symbol);
  if (port.kind != LATHE_TENSOR && port.kind != LATHE_STRINGS) return fmt::format("{}: {}", port.name, port.dtype);
  return fmt::format("{}: {} [{}]", port.name, port.dtype, port.known_rank ? dims : "...");
}

std::string describe(const driver::Limits& limits) {
  std::vector<std::string> set;
  if (limits.max_memory) set.push_back(fmt::format("max_memory={}", limits.max_memory));
  if (limits.max_steps) set.push_back(fmt::format("max_steps={}", limits.max_steps));
  if (limits.timeout > 0) set.push_back(fmt::format("timeout={:g}", limits.timeout));
  return fmt::format("Limits({})", fmt::join(set, ", "));
}

uint64_t positive(const std::optional<int64_t>& given, const char* name) {
  if (given && *given < 1) throw nb::value_error(fmt::format("{} must be at least 1, not {}", name, *given).c_str());
  return static_cast<uint64_t>(given.value_or(0));
}

driver::Limits make_limits(std::optional<int64_t> max_memory, std::optional<int64_t> max_steps,
                           std::optional<double> timeout) {
  if (timeout && !(*timeout > 0))
    throw nb::value_error(fmt::format("timeout must be more than 0 seconds, not {:g}", *timeout).c_str());
  return {positive(max_memory, "max_memory"), positive(max_steps, "max_steps"), timeout.value_or(0)};
}

template <class Number>
std::optional<Number> unless_none(Number limit) {
  return limit > 0 ? std::optional(limit) : std::nullopt;
}

nb::object shape_of(const Port& port) {
  if (!port.known_rank) return nb::none();
  nb::list shape;
  for (const auto& [size, symbol] : port.dims) {
    if (size >= 0)
      shape.append(size);
    else if (symbol.empty())
      shape.append(nb::none());
    else
      shape.append(symbol);
  }
  return nb::tuple(shape);
}

}  // namespace

void wrong_input(const std::string& message) {
  raise({support::Diagnostic{.code = driver::codes::input, .message = message}});
}

void check_rank(const Port& port, const DLTensor& given) {
  if (!port.known_rank || port.dims.size() == static_cast<size_t>(given.ndim)) return;
  wrong_input(fmt::format("input '{}' must fit {}, it has the shape [{}]", port.name, describe(port),
                          fmt::join(given.shape, given.shape + given.ndim, ", ")));
}

void raise_run_failure() {
  const LatheError* error = lathe_last_error();
  if (error->code == LATHE_KERNEL_FAILED) throw support::InternalError(error->message);
  support::Diagnostic d{.code = driver::code_of_status(error->code), .message = error->message};
  if (*error->node) d.place = support::ModelNode{"", error->node, ""};
  raise({std::move(d)});
}

Executable::Executable(driver::ExecutableRef native, driver::CompiledModelRef compiled, driver::RunOptions options,
                       std::string artifact)
    : native_(std::move(native)), compiled_(std::move(compiled)), options_(options), artifact_(std::move(artifact)) {
  LatheModel* model = native_->model();
  for (int32_t i = 0; i < lathe_input_count(model); ++i) inputs_.push_back(port_of(*lathe_input(model, i)));
  for (int32_t i = 0; i < lathe_output_count(model); ++i) outputs_.push_back(port_of(*lathe_output(model, i)));
  for (int32_t i = 0; i < lathe_state_count(model); ++i) states_.push_back(port_of(*lathe_state(model, i)));
}

Executable::Executable(driver::InterpretedRef interpreted) : interpreted_(std::move(interpreted)) {
  take_ports(interpreted_->signature());
}

Executable::Executable(driver::CompiledModelRef compiled, const driver::Signature& signature, support::Diagnostics why)
    : compiled_(std::move(compiled)), why_not_(std::move(why)) {
  take_ports(signature);
}

void Executable::take_ports(const driver::Signature& signature) {
  for (const relax::Var& input : signature.inputs) inputs_.push_back(port_of(input->name, input->struct_info));
  for (size_t i = 0; i < signature.outputs.size(); ++i)
    outputs_.push_back(port_of(signature.output_names[i], signature.outputs[i]));
}

Executable::~Executable() {
  for (LatheContext* context : idle_) lathe_destroy_context(context);
}

std::map<std::string, std::string> Executable::metadata() const {
  std::map<std::string, std::string> all;
  if (!native_) return {{"target", interpreted_ ? "interp" : compiled_->target.str()}};
  LatheModel* model = native_->model();
  for (int32_t i = 0; i < lathe_metadata_count(model); ++i) {
    const char* key = lathe_metadata_key(model, i);
    all[key] = lathe_metadata(model, key);
  }
  return all;
}

void Executable::check_state(const State* state) const {
  if (state == nullptr && !states_.empty())
    wrong_input("the model keeps states: give it state=, which make_state() makes");
  if (state != nullptr && &state->executable() != this) wrong_input("the state is another model's");
}

nb::list Executable::run(const std::vector<nb::handle>& inputs, const std::optional<driver::Limits>& limits,
                         State* state) {
  check_state(state);
  if (inputs.size() != inputs_.size())
    wrong_input(fmt::format("the model takes {} inputs, {} are given", inputs_.size(), inputs.size()));
  if (!native_ && !interpreted_) raise(why_not_);
  const driver::Limits& given = limits ? *limits : options_.limits;
  if (native_) {
    const auto is_tensor = [](const Port& port) { return port.kind == LATHE_TENSOR; };
    const bool plain = std::all_of(inputs_.begin(), inputs_.end(), is_tensor) &&
                       std::all_of(outputs_.begin(), outputs_.end(), is_tensor);
    return plain ? run_native(inputs, given, state) : run_native_values(inputs, given, state);
  }
  if (given.max_memory || given.max_steps || given.timeout > 0)
    wrong_input("limits hold for compiled code; this model is run by the interpreters");
  return run_interpreted(inputs);
}

LatheContext* Executable::take_context(const driver::RunOptions& options) {
  const LatheContextOptions wanted = driver::context_options(options);
  LatheContext* context = nullptr;
  if (idle_.empty()) {
    if (lathe_create_context(native_->model(), &wanted, &context) != LATHE_OK) raise_run_failure();
  } else {
    context = idle_.back();
    idle_.pop_back();
    lathe_set_limits(context, &wanted);
  }
  busy_.push_back(context);
  return context;
}

void Executable::in_context(const driver::Limits& limits, State* state,
                            const std::function<int32_t(LatheContext*)>& run) {
  driver::fail_on_request("run");
  LatheContext* context = state ? state->context_for(limits) : take_context({options_.threads, limits});
  int32_t status = LATHE_OK;
  {
    const driver::CancelOnInterrupt interrupt(context);
    const nb::gil_scoped_release unlocked;
    status = run(context);
  }
  if (!state) give_back(context);
  if (status == LATHE_CANCELLED && PyErr_CheckSignals() != 0) throw nb::python_error();
  if (status != LATHE_OK) raise_run_failure();
}

void Executable::give_back(LatheContext* context) {
  busy_.erase(std::find(busy_.begin(), busy_.end(), context));
  idle_.push_back(context);
}

void Executable::cancel() {
  for (LatheContext* context : busy_) lathe_cancel(context);
}

driver::Reproducer Executable::reproducer_of(const std::vector<InputFile>& inputs, const driver::Limits& limits) const {
  driver::Reproducer r{.model = artifact_, .arguments = {"run", artifact_.empty() ? "{model.so}" : "{model}"}};
  if (artifact_.empty())
    r.files.push_back({"model.so", "", [this](const std::string& path) {
                         return driver::save(*compiled_, *driver::form_named("so").value_or_throw(), path).ok();
                       }});
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string given(tool::no_value);
    if (!inputs[i].ending.empty()) {
      const std::string name = fmt::format("input{}{}", i, inputs[i].ending);
      r.files.push_back({name, "", inputs[i].write});
      given = "{" + name + "}";
    }
    r.arguments.insert(r.arguments.end(), {"--input", inputs_[i].name + "=" + given});
  }
  r.arguments.insert(r.arguments.end(), {"--threads", std::to_string(options_.threads)});
  tool::append_limits(limits, r.arguments);
  return r;
}

template <class Files>
void Executable::watched_run(Files&& files, const driver::Limits& limits, State* state,
                             const std::function<int32_t(LatheContext*)>& run) {
  const auto reproducer = [&] { return reproducer_of(files(), limits); };
  const driver::CrashWatch watch(reproducer);
  try {
    in_context(limits, state, run);
  } catch (const support::InternalError& failure) {
    driver::Reproducer left = reproducer();
    left.what = failure.what();
    throw driver::ReportedFailure(driver::leave_reproducer(left));
  }
}

std::vector<Executable::InputFile> Executable::files_of(const std::vector<const DLTensor*>& inputs) {
  std::vector<InputFile> made;
  for (const DLTensor* tensor : inputs)
    made.push_back({".npy", [tensor](const std::string& path) {
                      return tool::write_npy(path, tool::npy_array(*to_data(*tensor))).ok();
                    }});
  return made;
}

nb::list Executable::run_native(const std::vector<nb::handle>& given, const driver::Limits& limits, State* state) {
  std::deque<InputTensor> tensors;
  std::vector<const DLTensor*> inputs;
  for (size_t i = 0; i < given.size(); ++i) {
    inputs.push_back(&tensors.emplace_back(given[i], inputs_[i].name.c_str()).tensor());
    check_rank(inputs_[i], *inputs.back());
  }
  const auto files = [&] { return files_of(inputs); };
  std::vector<DLManagedTensor*> outputs(outputs_.size(), nullptr);
  watched_run(files, limits, state, [&](LatheContext* context) {
    return lathe_run(context, inputs.data(), static_cast<int32_t>(inputs.size()), outputs.data(),
                     static_cast<int32_t>(outputs.size()));
  });
  nb::list results;
  for (DLManagedTensor* output : outputs) results.append(to_numpy(output));
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  return results;
}

nb::list Executable::run_native_values(const std::vector<nb::handle>& given, const driver::Limits& limits,
                                       State* state) {
  std::vector<Value> values;
  std::vector<LatheValue*> inputs, outputs(outputs_.size(), nullptr);
  for (size_t i = 0; i < given.size(); ++i) {
    values.push_back(to_value(given[i], inputs_[i].kind, inputs_[i].name, raise_run_failure));
    inputs.push_back(values.back().get());
    if (inputs_[i].kind == LATHE_TENSOR) check_rank(inputs_[i], *lathe_value_tensor(inputs.back()));
  }
  const auto files = [&] {
    std::vector<InputFile> made;
    for (const LatheValue* value : inputs)
      made.push_back(
          {tool::file_form(*value), [value](const std::string& path) { return tool::write_value(path, *value).ok(); }});
    return made;
  };
  watched_run(files, limits, state, [&](LatheContext* context) {
    return lathe_run_values(context, inputs.data(), static_cast<int32_t>(inputs.size()), outputs.data(),
                            static_cast<int32_t>(outputs.size()));
  });
  std::vector<Value> owned;
  for (LatheValue* output : outputs) owned.emplace_back(output);
  nb::list results;
  for (Value& output : owned) results.append(from_value(std::move(output)));
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  return results;
}

nb::list Executable::run_interpreted(const std::vector<nb::handle>& given) {
  std::vector<ir::TensorData> inputs;
  for (size_t i = 0; i < given.size(); ++i)
    inputs.push_back(to_data(InputTensor(given[i], inputs_[i].name.c_str()).tensor()));
  const auto outputs = [&] {
    const nb::gil_scoped_release unlocked;
    return interpreted_->run(inputs);
  }();
  nb::list results;
  for (const ir::TensorData& output : unwrap(outputs)) results.append(to_numpy(output));
  return results;
}

Executable::Given Executable::given(const nb::args& args, const nb::kwargs& named, bool takes_out) const {
  Given given{std::vector<nb::handle>(inputs_.size()), {}, nullptr, {}};
  std::vector<nb::handle>& inputs = given.inputs;
  if (args.size() > inputs_.size())
    wrong_input(fmt::format("the model takes {} inputs, {} are given", inputs_.size(), args.size()));
  for (size_t i = 0; i < args.size(); ++i) inputs[i] = args[i];
  for (const auto& [key, value] : named) {
    const auto name = nb::cast<std::string>(key);
    const auto port = std::find_if(inputs_.begin(), inputs_.end(), [&](const Port& p) { return p.name == name; });
    if (name == "limits" && nb::isinstance<driver::Limits>(value)) {
      given.limits = nb::cast<driver::Limits>(value);
      continue;
    }
    if (name == "state" && port == inputs_.end()) {
      if (!value.is_none() && !nb::isinstance<State>(value)) wrong_input("'state' is none that make_state() made");
      given.state = value.is_none() ? nullptr : nb::cast<State*>(value);
      continue;
    }
    if (takes_out && name == "out" && port == inputs_.end()) {
      given.out = value;
      continue;
    }
    if (port == inputs_.end()) wrong_input("the model has no input '" + name + "'");
    nb::handle& input = inputs[static_cast<size_t>(port - inputs_.begin())];
    if (input.is_valid()) wrong_input("the input '" + name + "' is given twice");
    input = value;
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].is_valid()) wrong_input("the input '" + describe(inputs_[i]) + "' is missing");
  return given;
}

nb::object Executable::call(nb::args args, nb::kwargs named) {
  const Given taken = given(args, named, false);
  nb::list results = run(taken.inputs, taken.limits, taken.state);
  if (results.size() == 1) return results[0];
  return nb::tuple(results);
}

// In a state of its own, which says nothing to the caller's.
nb::list Executable::trial_run(const Given& given) {
  if (!given.state) return run(given.inputs, given.limits);
  State tried(*this);
  tried.copy_from(*given.state);
  return run(given.inputs, given.limits, &tried);
}

std::unique_ptr<PreparedCall> Executable::prepare(nb::args args, nb::kwargs named) {
  const Given taken = given(args, named, true);
  if (!native_ && !interpreted_) raise(why_not_);
  if (!native_) wrong_input("calls are prepared for compiled code; this model is run by the interpreters");
  check_state(taken.state);
  for (const std::vector<Port>* ports : {&inputs_, &outputs_})
    for (const Port& port : *ports)
      if (port.kind != LATHE_TENSOR)
        wrong_input(fmt::format("calls are prepared for tensors, and '{}' is of kind {}", port.name, port.dtype));
  // Where the results are not known yet, a first run makes them.
  const nb::object out =
      taken.out.is_valid() && !taken.out.is_none() ? nb::borrow(taken.out) : nb::object(trial_run(taken));
  return std::make_unique<PreparedCall>(*this, taken.inputs, out, taken.limits ? *taken.limits : options_.limits,
                                        taken.state);
}

void bind_runtime(nb::module_& m) {
  bind_memory(m);
  bind_prepared_call(m);
  bind_state(m);
  nb::class_<Port>(m, "Port", "An input or output of a compiled model.")
      .def_ro("name", &Port::name)
      .def_ro("dtype", &Port::dtype, "\"float32\"")
      .def_prop_ro("shape", shape_of, "Sizes, symbols' names, None for a size without a name; None for any rank.")
      .def("__repr__", [](const Port& port) { return "Port(" + describe(port) + ")"; });
  nb::class_<driver::Limits>(
      m, "Limits",
      "What a run may take: max_memory in bytes held at once (scratch, values, results not freed "
      "yet), max_steps in instructions between kernels, timeout in seconds; None: no limit. A "
      "run that passes one ends with RunError, which names the node and the limit.")
      .def(
          "__init__",
          [](driver::Limits* self, std::optional<int64_t> max_memory, std::optional<int64_t> max_steps,
             std::optional<double> timeout) { new (self) driver::Limits(make_limits(max_memory, max_steps, timeout)); },
          nb::kw_only(), nb::arg("max_memory") = nb::none(), nb::arg("max_steps") = nb::none(),
          nb::arg("timeout") = nb::none())
      .def_prop_ro("max_memory", [](const driver::Limits& self) { return unless_none(self.max_memory); })
      .def_prop_ro("max_steps", [](const driver::Limits& self) { return unless_none(self.max_steps); })
      .def_prop_ro("timeout", [](const driver::Limits& self) { return unless_none(self.timeout); })
      .def("__repr__", [](const driver::Limits& self) { return describe(self); });
  nb::class_<Executable>(
      m, "Executable",
      "A model that runs: call it with arrays by position or by name, and limits=Limits(...), state=make_state(). One "
      "output is given as an array, several as a tuple. Safe from several threads.")
      .def_prop_rw("limits", &Executable::limits, &Executable::set_limits, "Of runs that give none of their own.")
      .def("cancel", &Executable::cancel, "Ends the runs in progress, of any thread, with RunError.")
      .def_prop_ro("inputs", &Executable::inputs, "Ports in order.")
      .def_prop_ro("outputs", &Executable::outputs, "Ports in order.")
      .def_prop_ro("metadata", &Executable::metadata, "What the compiler wrote down: target, version, …")
      .def_prop_ro("states", &Executable::states,
                   "Ports of what the model keeps from one call to the next, sizes as the model's inputs have them.")
      .def(
          "make_state", [](Executable& self) { return std::make_unique<State>(self); },
          "What the model keeps from one call to the next, empty: calls take it as state=….")
      .def(
          "run",
          [](Executable& self, nb::sequence inputs, const std::optional<driver::Limits>& limits, State* state) {
            std::vector<nb::object> held;
            std::vector<nb::handle> handles;
            for (nb::handle input : inputs) held.push_back(nb::borrow(input));
            for (const nb::object& input : held) handles.push_back(input);
            return self.run(handles, limits, state);
          },
          nb::arg("inputs"), nb::arg("limits") = nb::none(), nb::arg("state") = nb::none(),
          "The outputs as a list, for inputs in order.")
      .def("__call__", &Executable::call)
      .def(
          "prepare", &Executable::prepare,
          "A call bound to tensors: prepare(x, y=…, out=array or arrays, limits=…, state=…). Each call() of what it "
          "gives runs "
          "the model on what these arrays hold then, and gives the results in the arrays of `out`, or in arrays of its "
          "own which the next call() writes anew. For one thread at a time.")
      .def("__repr__", [](const Executable& self) {
        std::string text;
        for (const Port& port : self.inputs()) text += (text.empty() ? "" : ", ") + describe(port);
        text += " -> ";
        for (size_t i = 0; i < self.outputs().size(); ++i) text += (i ? ", " : "") + describe(self.outputs()[i]);
        return "Executable(" + text + ")";
      });
}

}  // namespace lathe::python
