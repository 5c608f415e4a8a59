#include <deque>

#include "abi/lathe.h"
#include "driver/codes.h"
#include "executable.h"
#include "tensors.h"

namespace lathe::python {
namespace {

Port port_of(const LatheValueInfo& info) {
  Port port{info.name, info.kind == LATHE_TENSOR ? dtype_name(info.dtype) : "object", info.rank >= 0, {}};
  for (int32_t d = 0; d < info.rank; ++d) port.dims.emplace_back(info.dims[d], info.symbols[d]);
  return port;
}

Port port_of(const std::string& name, const relax::StructInfo& info) {
  const auto* tensor = info ? info.as<relax::TensorStructInfo>() : nullptr;
  Port port{name, tensor ? tensor->dtype.str() : "object", tensor && tensor->shape, {}};
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
  return fmt::format("{}: {} [{}]", port.name, port.dtype, port.known_rank ? dims : "...");
}

[[noreturn]] void wrong_input(const std::string& message) {
  raise({support::Diagnostic{.code = driver::codes::input, .message = message}});
}

[[noreturn]] void raise_run_failure() {
  const LatheError* error = lathe_last_error();
  support::Diagnostic d{.code = {error->code == LATHE_INVALID_ARGUMENT ? "runtime-input" : "runtime-failed"},
                        .message = error->message};
  if (*error->node) d.place = support::ModelNode{"", error->node, ""};
  raise({std::move(d)});
}

// The runtime checks everything else, and says it as well.
void check_rank(const Port& port, const DLTensor& given) {
  if (!port.known_rank || port.dims.size() == static_cast<size_t>(given.ndim)) return;
  wrong_input(fmt::format("input '{}' must fit {}, it has the shape [{}]", port.name, describe(port),
                          fmt::join(given.shape, given.shape + given.ndim, ", ")));
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

Executable::Executable(driver::ExecutableRef native, driver::CompiledModelRef compiled, int threads)
    : native_(std::move(native)), compiled_(std::move(compiled)), threads_(threads) {
  LatheModel* model = native_->model();
  for (int32_t i = 0; i < lathe_input_count(model); ++i) inputs_.push_back(port_of(*lathe_input(model, i)));
  for (int32_t i = 0; i < lathe_output_count(model); ++i) outputs_.push_back(port_of(*lathe_output(model, i)));
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

nb::list Executable::run(const std::vector<nb::handle>& inputs) {
  if (inputs.size() != inputs_.size())
    wrong_input(fmt::format("the model takes {} inputs, {} are given", inputs_.size(), inputs.size()));
  if (!native_ && !interpreted_) raise(why_not_);
  return native_ ? run_native(inputs) : run_interpreted(inputs);
}

nb::list Executable::run_native(const std::vector<nb::handle>& given) {
  std::deque<InputTensor> tensors;
  std::vector<const DLTensor*> inputs;
  for (size_t i = 0; i < given.size(); ++i) {
    inputs.push_back(&tensors.emplace_back(given[i], inputs_[i].name.c_str()).tensor());
    check_rank(inputs_[i], *inputs.back());
  }

  LatheContext* context = nullptr;
  if (!idle_.empty()) {
    context = idle_.back();
    idle_.pop_back();
  } else {
    LatheContextOptions options{};
    options.size = sizeof(options);
    options.threads = threads_;
    if (lathe_create_context(native_->model(), &options, &context) != LATHE_OK) raise_run_failure();
  }
  std::vector<DLManagedTensor*> outputs(outputs_.size(), nullptr);
  int32_t status = LATHE_OK;
  {
    const nb::gil_scoped_release unlocked;
    status = lathe_run(context, inputs.data(), static_cast<int32_t>(inputs.size()), outputs.data(),
                       static_cast<int32_t>(outputs.size()));
  }
  idle_.push_back(context);
  if (status != LATHE_OK) raise_run_failure();
  nb::list results;
  for (DLManagedTensor* output : outputs) results.append(to_numpy(output));
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

nb::object Executable::call(nb::args args, nb::kwargs named) {
  std::vector<nb::handle> inputs(inputs_.size());
  if (args.size() > inputs_.size())
    wrong_input(fmt::format("the model takes {} inputs, {} are given", inputs_.size(), args.size()));
  for (size_t i = 0; i < args.size(); ++i) inputs[i] = args[i];
  for (const auto& [key, value] : named) {
    const auto name = nb::cast<std::string>(key);
    const auto port = std::find_if(inputs_.begin(), inputs_.end(), [&](const Port& p) { return p.name == name; });
    if (port == inputs_.end()) wrong_input("the model has no input '" + name + "'");
    nb::handle& input = inputs[static_cast<size_t>(port - inputs_.begin())];
    if (input.is_valid()) wrong_input("the input '" + name + "' is given twice");
    input = value;
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].is_valid()) wrong_input("the input '" + describe(inputs_[i]) + "' is missing");
  nb::list results = run(inputs);
  if (results.size() == 1) return results[0];
  return nb::tuple(results);
}

void bind_runtime(nb::module_& m) {
  bind_memory(m);
  nb::class_<Port>(m, "Port", "An input or output of a compiled model.")
      .def_ro("name", &Port::name)
      .def_ro("dtype", &Port::dtype, "\"float32\"")
      .def_prop_ro("shape", shape_of, "Sizes, symbols' names, None for a size without a name; None for any rank.")
      .def("__repr__", [](const Port& port) { return "Port(" + describe(port) + ")"; });
  nb::class_<Executable>(m, "Executable",
                         "A model that runs: call it with arrays by position or by name. One output is given as an "
                         "array, several as a tuple. Safe from several threads.")
      .def_prop_ro("inputs", &Executable::inputs, "Ports in order.")
      .def_prop_ro("outputs", &Executable::outputs, "Ports in order.")
      .def_prop_ro("metadata", &Executable::metadata, "What the compiler wrote down: target, version, …")
      .def(
          "run",
          [](Executable& self, nb::sequence inputs) {
            std::vector<nb::object> held;
            std::vector<nb::handle> handles;
            for (nb::handle input : inputs) held.push_back(nb::borrow(input));
            for (const nb::object& input : held) handles.push_back(input);
            return self.run(handles);
          },
          nb::arg("inputs"), "The outputs as a list, for inputs in order.")
      .def("__call__", &Executable::call)
      .def("__repr__", [](const Executable& self) {
        std::string text;
        for (const Port& port : self.inputs()) text += (text.empty() ? "" : ", ") + describe(port);
        text += " -> ";
        for (size_t i = 0; i < self.outputs().size(); ++i) text += (i ? ", " : "") + describe(self.outputs()[i]);
        return "Executable(" + text + ")";
      });
}

}  // namespace lathe::python
