#include "driver/script_file.h"

#include <fstream>
#include <sstream>

#include "driver/codes.h"
#include "driver/verify_module.h"
#include "interchange/onnx/nodes/node_call.h"
#include "relax/script/dialect.h"
#include "script/constant_text.h"
#include "script/parse.h"
#include "script/print.h"
#include "tir/script/dialect.h"

namespace lathe::driver {
namespace {

// The side file: the magic line, then for each constant a line "name dtype extent…" and its bytes.
constexpr std::string_view magic = "lathe constants 1\n";
using Constants = std::map<std::string, ir::TensorData>;

support::Diagnostic unreadable(const std::string& path, const std::string& why) {
  return support::Diagnostic{.code = codes::script_file, .message = path + ": " + why};
}

support::Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return unreadable(path, "the file cannot be opened");
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// All constants of a side file; sizes are checked against the file before anything is taken from it.
support::Result<Constants> read_constants(const std::string& path) {
  auto bytes = std::make_shared<const std::string>(TRY(read_file(path)));
  const std::string& all = *bytes;
  if (!all.starts_with(magic)) return unreadable(path, "this is no file of constants");
  Constants constants;
  for (size_t at = magic.size(); at < all.size();) {
    const size_t line_end = all.find('\n', at);
    if (line_end == std::string::npos) return unreadable(path, "the file ends inside a constant");
    std::istringstream line(all.substr(at, line_end - at));
    std::string name, type;
    line >> name >> type;
    const auto dtype = ir::DType::parse(type);
    if (!dtype || dtype->storage_bits() == 0) return unreadable(path, "constant " + name + " has no known dtype");
    std::vector<int64_t> shape;
    __int128 count = dtype->lanes * dtype->storage_bits();
    for (int64_t extent = 0; line >> extent;) {
      if (extent < 0) return unreadable(path, "constant " + name + " has a negative extent");
      shape.push_back(extent);
      count = std::min<__int128>(count * extent, __int128{1} << 62);
    }
    const auto size = static_cast<uint64_t>((count + 7) / 8);
    if (size > all.size() - line_end - 1) return unreadable(path, "the file ends inside constant " + name);
    ir::TensorData data = ir::tensor_data(*dtype, std::move(shape), all.data() + line_end + 1, bytes);
    if (script::content_name(*data) != name) return unreadable(path, "the bytes of constant " + name + " were changed");
    constants[name] = std::move(data);
    at = line_end + 1 + size;
  }
  return constants;
}

}  // namespace

support::Result<ir::IRModule> read_script(const std::string& path) {
  std::string text = TRY(read_file(path));
  Constants constants;
  const std::string beside = path + ".constants";
  if (std::filesystem::exists(beside)) constants = TRY(read_constants(beside));
  script::ParseOptions options;
  options.constants = [&](const std::string& name) {
    const auto it = constants.find(name);
    return it == constants.end() ? ir::TensorData() : it->second;
  };
  const auto graph = relax::script_dialect(onnx::operators_with_nodes());
  const script::Dialect* dialects[] = {&tir::script_dialect(), graph.get()};
  ir::IRModule module = TRY(script::parse({path, std::move(text)}, dialects, options));
  if (support::Diagnostics found = verify_module(module, {}); !found.empty()) return found;
  return module;
}

support::Status write_script(const ir::IRModule& module, const std::string& path) {
  Constants constants;
  script::PrintOptions options;
  options.constants = &constants;
  const auto graph = relax::script_dialect(onnx::operators_with_nodes());
  const script::Dialect* dialects[] = {&tir::script_dialect(), graph.get()};
  std::ofstream file(path, std::ios::binary);
  file << script::print(module, options, dialects);
  if (!file.flush()) return unreadable(path, "the file cannot be written");
  const std::string beside = path + ".constants";
  if (constants.empty()) {
    std::filesystem::remove(beside);
    return support::success();
  }
  std::ofstream side(beside, std::ios::binary);
  side << magic;
  for (const auto& [name, data] : constants) {
    side << name << ' ' << data->dtype.str();
    for (const int64_t extent : data->shape) side << ' ' << extent;
    side << '\n' << data->view();
  }
  if (!side.flush()) return unreadable(beside, "the file cannot be written");
  return support::success();
}

}  // namespace lathe::driver
