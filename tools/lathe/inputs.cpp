#include "inputs.h"

#include "arrays/npy.h"
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

ir::TensorData random_input(const LatheValueInfo& info, uint64_t seed) {
  const std::vector<int64_t> shape(info.dims, info.dims + std::max(info.rank, 0));
  if (info.kind != LATHE_TENSOR || info.rank < 0 || std::count(shape.begin(), shape.end(), -1))
    refuse("the input '" + signature(info) + "' cannot be made up",
           "fix its sizes with --dim, or give it with --input");
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
  return std::string(info.name) + ": " + driver::dtype_name(info.dtype) + " [" + dims + "]";
}

std::vector<ir::TensorData> read_inputs(const std::vector<std::string>& given, LatheModel* model, bool made_up) {
  std::map<std::string, ir::TensorData> arrays;
  for (const std::string& option : given) {
    const auto [name, path] = split_pair("--input", option);
    support::Result<ir::TensorData> array = read_npy(path);
    if (!array.ok()) {
      support::Diagnostic unread = array.diagnostics()[0];
      unread.message = "input '" + name + "': " + unread.message;
      throw support::DiagnosticError(std::move(unread));
    }
    arrays[name] = *array;
  }
  std::vector<ir::TensorData> inputs;
  for (int32_t i = 0; i < lathe_input_count(model); ++i) {
    const LatheValueInfo& info = *lathe_input(model, i);
    const auto it = arrays.find(info.name);
    if (it == arrays.end()) {
      if (!made_up) refuse("the input '" + signature(info) + "' is missing; give it with --input");
      inputs.push_back(random_input(info, static_cast<uint64_t>(i) + 1));
      continue;
    }
    inputs.push_back(it->second);
    arrays.erase(it);
  }
  if (!arrays.empty()) refuse("the model has no input '" + arrays.begin()->first + "'");
  return inputs;
}

void append_inputs(const std::vector<std::string>& given, driver::Reproducer& reproducer) {
  for (const std::string& option : given) {
    const size_t equals = std::min(option.find('='), option.size());
    const std::string path = equals < option.size() ? option.substr(equals + 1) : "";
    const std::string name = option.substr(0, std::min(equals + 1, option.size()));
    reproducer.arguments.insert(reproducer.arguments.end(),
                                {"--input", name + driver::file_argument(reproducer, path)});
  }
}

}  // namespace lathe::tool
