#include "driver/report/reproducer.h"

#include <gtest/gtest.h>

#include <csignal>

#include "driver/report/crash.h"
#include "script/parse.h"
#include "tir/script/dialect.h"

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

fs::path folder_in(const std::string& said) {
  const size_t begin = said.find("lies in ") + 8;
  return said.substr(begin, said.find(')', begin) - begin);
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(reporting, writes_a_program_that_came_from_no_file) {
  const script::Dialect* dialects[] = {&tir::script_dialect()};
  const std::string text = R"(
@T.prim_func
def twice(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32")):
    for i in range(8):
        b[i] = a[i] * T.float32(2)
)";
  const ir::IRModule module = script::parse({"test.py", text}, dialects).value_or_throw();
  const std::string said = leave_reproducer({.module = module, .arguments = {"compile", "{model}"}, .what = "x"});
  const fs::path folder = folder_in(said);
  EXPECT_EQ(text_of(folder / "command.txt"), "lathe compile " + (folder / "model.tir").string() + "\n");
  EXPECT_NE(text_of(folder / "model.tir").find("def twice("), std::string::npos);
  fs::remove_all(folder);
}

TEST(reporting, takes_files_along_and_names_the_originals_of_those_too_large) {
  const fs::path given = fs::temp_directory_path() / "lathe_reproducer_files";
  fs::create_directories(given);
  std::ofstream(given / "small.npy") << "small";
  std::ofstream(given / "large.npy") << "large";
  fs::resize_file(given / "large.npy", reproducer_limit);  // with the other, beyond it; takes no room on the disk
  Reproducer r{.content = "model", .arguments = {"run", "{model}"}, .what = "x"};
  for (const char* name : {"small.npy", "large.npy", "missing.npy"})
    r.arguments.push_back("x=" + file_argument(r, (given / name).string()));
  r.files.push_back({"made.npy", "", [](const std::string& path) {
                       std::ofstream(path) << "made";
                       return true;
                     }});
  r.arguments.push_back("x={made.npy}");
  const fs::path folder = folder_in(leave_reproducer(r));
  EXPECT_EQ(text_of(folder / "command.txt"),
            fmt::format("lathe run {0}/model.onnx x={0}/0-small.npy x={1}/large.npy x={1}/missing.npy x={0}/made.npy\n",
                        folder.string(), given.string()));
  EXPECT_EQ(text_of(folder / "0-small.npy"), "small");
  EXPECT_EQ(text_of(folder / "made.npy"), "made");
  EXPECT_FALSE(fs::exists(folder / "1-large.npy"));
  for (const fs::path& path : {folder, given}) fs::remove_all(path);
}

TEST(crash, on_any_thread_leaves_the_reproducer_of_what_runs_and_ends_the_process_as_before) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // tests before this one may have left threads
  const fs::path left = fs::temp_directory_path() / "lathe_crash_test";
  const auto crash = [&] {
    ::setenv("LATHE_REPRODUCER_DIR", left.c_str(), 1);
    const auto outer = [] { return Reproducer{.content = "outer", .arguments = {"run", "{model}"}}; };
    const auto inner = [] { return Reproducer{.content = "inner", .arguments = {"bench", "{model}"}}; };
    const CrashWatch first(outer);
    {
      const CrashWatch over(inner);
    }
    std::thread([] { __builtin_trap(); }).join();
  };
  EXPECT_EXIT(crash(), ::testing::KilledBySignal(SIGILL), "the process got SIGILL\nrerun it with: lathe run");
  size_t folders = 0;
  for (const auto& folder : fs::directory_iterator(left)) folders += text_of(folder.path() / "model.onnx") == "outer";
  EXPECT_EQ(folders, 1U);
  fs::remove_all(left);
}

TEST(crash, of_what_is_no_longer_watched_leaves_nothing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const fs::path left = fs::temp_directory_path() / "lathe_no_crash_test";
  const auto unwatched = [&] {
    ::setenv("LATHE_REPRODUCER_DIR", left.c_str(), 1);
    const auto make = [] { return Reproducer{}; };
    {
      const CrashWatch over(make);
    }
    __builtin_trap();
  };
  EXPECT_EXIT(unwatched(), ::testing::KilledBySignal(SIGILL), "");
  EXPECT_FALSE(fs::exists(left));
}

TEST(reporting, lets_a_user_s_error_pass) {
  Reproducer reproducer;
  EXPECT_THROW(reporting(reproducer, []() -> int { throw support::DiagnosticError(support::Diagnostic{}); }),
               support::DiagnosticError);
  EXPECT_EQ(reporting(reproducer, [] { return 3; }), 3);
}

}  // namespace
}  // namespace lathe::driver
