#include "inputs.h"

#include "abi/program.h"
#include "arrays/values.h"
#include "codes.h"
#include "command.h"
#include "driver/executable.h"
#include "driver/verify/tensors.h"

namespace lathe::tool {
namespace {

[[noreturn]] void refuse(std::string message, std::string help = "") {
  throw support::DiagnosticError(
      support::Diagnostic{.code = codes::run, .message = std::move(message), .help = std::move(help)});
}

ir::TensorData random_input(const LatheValueInfo& info, const relax::DimSizesByName& told, uint64_t seed) {
  std::vector<int64_t> shape(info.dims, info.dims + std::max(info.rank, 0));
  for (size_t d = 0; d < shape.size(); ++d)
    if (const auto it = told.find(info.symbols[d]); shape[d] < 0 && it != told.end() && !it->second.likely.empty())
      shape[d] = it->second.likely[0];
  if (info.kind != LATHE_TENSOR || info.rank < 0 || std::count(shape.begin(), shape.end(), -1))
    refuse("the input '" + signature(info) + "' cannot be made up",
           "fix its sizes with --dim (n=8), tell those that are likely (n=1..64:8), or give it with --input");
  const std::optional<ir::DType> dtype = ir::DType::parse(driver::dtype_name(info.dtype));
  if (!dtype) refuse("the input '" + signature(info) + "' cannot be made up", "give it with --input");
  return driver::random_tensor(*dtype, shape, seed);
}

}  // namespace

std::string signature(const LatheValueInfo& info) {
  std::string dims;
  for (int32_t d = 0; d < info.rank; ++d) {
    const std::string symbol = info.symbols[d];
    dims += (d ? ", " : "") + (info.dims[d] >= 0 ? std::to_string(info.dims[d]) : symbol.empty() ? "?" : symbol);
  }
  const bool has_extents = info.kind == LATHE_TENSOR || info.kind == LATHE_STRINGS;
  return std::string(info.name) + ": " +
         (info.kind == LATHE_TENSOR ? driver::dtype_name(info.dtype) : abi::value_kind_names[info.kind]) +
         (has_extents ? " [" + (info.rank < 0 ? "..." : dims) + "]" : "");
}

namespace {

// What options of that name give: inputs or states of a model.
struct Ports {
  const char* option;
  std::string what;
  int32_t (*count)(const LatheModel*);
  const LatheValueInfo* (*port)(const LatheModel*, int32_t);
};
const Ports input_ports{"--input", "input", lathe_input_count, lathe_input};
const Ports state_ports{"--state", "state", lathe_state_count, lathe_state};

// For each port of the model what `make` gives for it and the path that was given, or null.
template <class Each>
void on_ports(const Ports& ports, const std::vector<std::string>& given, LatheModel* model, Each&& make) {
  std::map<std::string, std::string> paths;
  for (const std::string& option : given) paths.insert(split_pair(ports.option, option));
  for (int32_t i = 0; i < ports.count(model); ++i) {
    const auto it = paths.find(ports.port(model, i)->name);
    make(i, it == paths.end() ? nullptr : &it->second);
    if (it != paths.end()) paths.erase(it);
  }
  if (!paths.empty()) refuse("the model has no " + ports.what + " '" + paths.begin()->first + "'");
}

driver::Value read_port(const Ports& ports, const std::string* path, const LatheValueInfo& info) {
  if (!path) refuse("the " + ports.what + " '" + signature(info) + "' is missing; give it with " + ports.option);
  support::Result<driver::Value> value = read_value(*path, info);
  if (value.ok()) return std::move(*value);
  support::Diagnostic unread = value.diagnostics()[0];
  unread.message = ports.what + " '" + info.name + "': " + unread.message;
  throw support::DiagnosticError(std::move(unread));
}

}  // namespace

std::vector<driver::Value> read_inputs(const std::vector<std::string>& given, LatheModel* model) {
  std::vector<driver::Value> inputs;
  on_ports(input_ports, given, model, [&](int32_t i, const std::string* path) {
    inputs.push_back(read_port(input_ports, path, *lathe_input(model, i)));
  });
  return inputs;
}

std::vector<ir::TensorData> read_states(const std::vector<std::string>& given, LatheModel* model) {
  std::vector<ir::TensorData> states;
  on_ports(state_ports, given, model, [&](int32_t i, const std::string* path) {
    states.push_back(driver::tensor_of(*read_port(state_ports, path, *lathe_state(model, i))));
  });
  return states;
}

std::vector<ir::TensorData> read_or_make_inputs(const std::vector<std::string>& given, LatheModel* model,
                                                const relax::DimSizesByName& told) {
  std::vector<ir::TensorData> inputs;
  on_ports(input_ports, given, model, [&](int32_t i, const std::string* path) {
    const LatheValueInfo& info = *lathe_input(model, i);
    if (path && info.kind != LATHE_TENSOR) refuse("the input '" + signature(info) + "' is no tensor of numbers");
    inputs.push_back(path ? driver::tensor_of(*read_port(input_ports, path, info))
                          : random_input(info, told, static_cast<uint64_t>(i) + 1));
  });
  return inputs;
}

void append_inputs(const std::vector<std::string>& given, driver::Reproducer& reproducer, const std::string& option) {
  for (const std::string& text : given) {
    const size_t equals = std::min(text.find('='), text.size());
    const std::string path = equals < text.size() ? text.substr(equals + 1) : "";
    const std::string name = text.substr(0, std::min(equals + 1, text.size()));
    reproducer.arguments.insert(reproducer.arguments.end(), {option, name + driver::file_argument(reproducer, path)});
  }
}

}  // namespace lathe::tool
