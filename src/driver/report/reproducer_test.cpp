#include "driver/report/reproducer.h"

#include <gtest/gtest.h>

namespace lathe::driver {
namespace {

namespace fs = std::filesystem;

TEST(reporting, leaves_a_folder_and_a_line_for_an_internal_failure) {
  Reproducer reproducer{
      .content = "the model", .arguments = {"compile", "{model}", "-o", "my model.so"}, .stage = "fuse_ops"};
  try {
    reporting(reproducer, []() -> int { throw support::InternalError("a broken invariant"); });
    FAIL() << "nothing was thrown";
  } catch (const ReportedFailure& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("after fuse_ops: a broken invariant"), std::string::npos) << text;
    const size_t begin = text.find("lies in ") + 8;
    const fs::path folder = text.substr(begin, text.find(')', begin) - begin);
    std::ifstream model(folder / "model.onnx"), command(folder / "command.txt");
    std::string line;
    std::getline(model, line);
    EXPECT_EQ(line, "the model");
    std::getline(command, line);
    EXPECT_EQ(line, "lathe compile " + (folder / "model.onnx").string() + " -o 'my model.so'");
    fs::remove_all(folder);
  }
}

TEST(reporting, takes_a_script_s_constants_along) {
  const fs::path script = fs::temp_directory_path() / "lathe_reproducer_test.relax";
  std::ofstream(script) << "the script";
  std::ofstream(script.string() + ".constants") << "its constants";
  const std::string said = leave_reproducer({.model = script.string(), .arguments = {"opt", "{model}"}, .what = "x"});
  const size_t begin = said.find("lies in ") + 8;
  const fs::path folder = said.substr(begin, said.find(')', begin) - begin);
  std::ifstream constants(folder / "lathe_reproducer_test.relax.constants");
  std::string line;
  std::getline(constants, line);
  EXPECT_EQ(line, "its constants");
  for (const fs::path& path : {folder, script, fs::path(script.string() + ".constants")}) fs::remove_all(path);
}

TEST(reporting, lets_a_user_s_error_pass) {
  Reproducer reproducer;
  EXPECT_THROW(reporting(reproducer, []() -> int { throw support::DiagnosticError(support::Diagnostic{}); }),
               support::DiagnosticError);
  EXPECT_EQ(reporting(reproducer, [] { return 3; }), 3);
}

}  // namespace
}  // namespace lathe::driver
