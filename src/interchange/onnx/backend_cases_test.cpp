// The node cases of the onnx package's backend suite through import and the interpreter of graphs: importer errors
// show here before anything is compiled. Cases of operators that Lathe does not know are counted, not run.
#include "interchange/onnx/model_fixture.h"
#include "interchange/onnx/node.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary
namespace fs = std::filesystem;

// The suite's data in the development environment's packages. Tests run in the build folder.
std::vector<fs::path> case_folders() {
  std::vector<fs::path> folders;
  std::error_code none;
  for (const char* root : {"../.venv/lib", ".venv/lib"})
    for (const auto& python : fs::directory_iterator(root, none)) {
      const fs::path data = python.path() / "site-packages/onnx/backend/test/data/node";
      for (const auto& entry : fs::directory_iterator(data, none)) folders.push_back(entry.path());
      if (!folders.empty()) break;
    }
  std::sort(folders.begin(), folders.end());
  return folders;
}

Result<TensorData> load_tensor(const fs::path& path) {
  const Bytes file = TRY(map_file(path.string()));
  // A tensor alone is read as the only initializer of a model.
  schema::ModelProto model;
  if (!model.mutable_graph()->add_initializer()->ParseFromArray(file.view.data(), static_cast<int>(file.view.size())))
    return support::Diagnostic{.code = {"test"}, .message = "no tensor"};
  auto bytes = std::make_shared<const std::string>(model.SerializeAsString());
  const Model read = TRY(read_model({*bytes, bytes}, path.filename().string(), ""));
  return read_tensor(read, read.proto->graph().initializer(0), "the tensor", read.place());
}

// The suite's tolerances.
std::string difference(const TensorData& actual, const TensorData& expected) {
  if (actual->shape != expected->shape || actual->dtype != expected->dtype)
    return "another shape or type: " + actual->dtype.str();
  for (int64_t i = 0; i < expected->elements(); ++i) {
    const double a = ir::float_at(*actual, i), e = ir::float_at(*expected, i);
    const bool same = a == e || (std::isnan(a) && std::isnan(e)) || std::fabs(a - e) <= 1e-7 + 1e-3 * std::fabs(e);
    if (!same) return "element " + std::to_string(i) + " is " + std::to_string(a) + ", not " + std::to_string(e);
  }
  return "";
}

// "" for a pass.
std::string run_case(const fs::path& folder) {
  const auto module = import_onnx((folder / "model.onnx").string());
  if (!module.ok()) return "import: " + text_of(module.diagnostics());
  for (int set = 0; fs::exists(folder / ("test_data_set_" + std::to_string(set))); ++set) {
    const fs::path data = folder / ("test_data_set_" + std::to_string(set));
    std::vector<TensorData> inputs;
    const auto main = module->find_as<relax::FunctionNode>("main");
    for (size_t i = 0; i < main->params.size(); ++i) {
      const auto tensor = load_tensor(data / ("input_" + std::to_string(i) + ".pb"));
      if (!tensor.ok()) return "input: " + text_of(tensor.diagnostics());
      inputs.push_back(*tensor);
    }
    const auto outputs = relax::evaluate(*module, "main", inputs, {.max_steps = 3'000'000});
    if (!outputs.ok()) return "evaluate: " + text_of(outputs.diagnostics());
    for (size_t i = 0; i < outputs->size(); ++i) {
      const auto expected = load_tensor(data / ("output_" + std::to_string(i) + ".pb"));
      if (!expected.ok()) return "output: " + text_of(expected.diagnostics());
      if (std::string wrong = difference((*outputs)[i], *expected); !wrong.empty()) return "wrong: " + wrong;
    }
  }
  return "";
}

// Under a sanitizer, which takes ten times as long, one case in twelve.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr size_t step = 12;
#else
constexpr size_t step = 1;
#endif

TEST(BackendCases, what_is_imported_computes_what_the_suite_expects) {
  const std::vector<fs::path> folders = case_folders();
  ASSERT_GT(folders.size(), 1000u) << "the onnx package's backend data is not in .venv";
  size_t passed = 0, unknown = 0, long_ones = 0;
  std::string failures;
  for (size_t i = 0; i < folders.size(); i += step) {
    const fs::path& folder = folders[i];
    std::string why;
    try {
      why = run_case(folder);
    } catch (const std::exception& error) {
      why = std::string("exception: ") + error.what();
    }
    if (why.empty())
      ++passed;
    else if (why.find("onnx-unknown-operator") != std::string::npos)
      ++unknown;
    else if (why.find("steps") != std::string::npos)
      ++long_ones;
    else
      failures += folder.filename().string() + ": " + why.substr(0, 400) + "\n";
  }
  std::cout << passed << " of " << folders.size() / step << " cases pass, " << unknown << " are of unknown operators, "
            << long_ones << " take too many steps\n"
            << failures;
  EXPECT_GE(passed, 1200 / step);
}

}  // namespace
}  // namespace lathe::onnx
