#include "script/testing/expected_text.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tir/script/dialect.h"

namespace lathe::script::testing {
namespace {

namespace fs = std::filesystem;

const Dialect* const tensor_programs[] = {&tir::script_dialect()};

std::string program(int extent) {
  return fmt::format(
      "@T.prim_func\ndef main(A: T.Buffer(({0},), \"float32\")):\n    for i in range({0}):\n        A[i] = "
      "T.float32(1.0)\n",
      extent);
}
std::string refusal_of(std::string_view text) {
  const auto cases = read_cases(text);
  return cases.ok() ? "" : cases.diagnostics()[0].message;
}

support::Result<ir::IRModule> same(ir::IRModule module, const ir::PassContext&) { return module; }
support::Result<ir::IRModule> never(ir::IRModule, const ir::PassContext&) {
  return support::Diagnostic{.code = {"test-never"}, .message = "not this program"};
}

// A folder with the text that belongs to a test, and the path of that test.
struct TextFile {
  fs::path folder = fs::temp_directory_path() / fmt::format("lathe_expected_text_{}", ::getpid());
  std::string test = (folder / "pass_test.cpp").string();

  explicit TextFile(const std::vector<TextCase>& cases) {
    fs::create_directories(folder);
    std::ofstream(folder / "pass_test.txt") << write_cases(cases);
  }
  ~TextFile() { fs::remove_all(folder); }
  std::string content() const {
    std::stringstream all;
    all << std::ifstream(folder / "pass_test.txt").rdbuf();
    return all.str();
  }
};

TEST(expected_text, cases_come_back_from_their_file) {
  const std::vector<TextCase> cases{{"first", program(3), program(4)}, {"second", program(5), "# refused: x: y\n"}};
  EXPECT_EQ(read_cases(write_cases(cases)).value_or_throw(), cases);
  const std::vector<TextCase> fresh{{"not_written_yet", program(3), ""}};
  EXPECT_EQ(read_cases("\n# case: not_written_yet\n\n" + program(3) + "\n\n# becomes:").value_or_throw(), fresh);
  EXPECT_EQ(read_cases("# case: not_written_yet\n" + program(3)).value_or_throw(), fresh);
  EXPECT_EQ(read_cases("# case: not_written_yet\n" + program(3) + "\n" + write_cases(cases)).value_or_throw().size(),
            3);
}

TEST(expected_text, says_what_is_wrong_with_a_file) {
  EXPECT_EQ(refusal_of(""), "line 0: there are no cases");
  EXPECT_EQ(refusal_of("x = 1\n"), "line 1: a file begins with '# case: '");
  EXPECT_EQ(refusal_of("# case: a\n# becomes:\n# becomes:\n"), "line 3: '# becomes:' follows a program");
}

TEST(expected_text, accepts_what_is_expected_and_shows_what_is_not) {
  const TextFile right({{"kept", program(3), program(3)}});
  EXPECT_EQ(check_cases(same, {}, right.test.c_str(), tensor_programs), "");
  const std::string problem = check_cases(never, {}, right.test.c_str(), tensor_programs);
  EXPECT_NE(problem.find("case kept becomes\n# refused: test-never: not this program\ninstead of\n@T.prim_func"),
            std::string::npos)
      << problem;
}

TEST(expected_text, refuses_a_program_that_does_not_parse_and_a_file_that_is_missing) {
  const TextFile wrong({{"broken", "@T.prim_func\ndef main(:\n", ""}});
  EXPECT_NE(check_cases(same, {}, wrong.test.c_str(), tensor_programs), "");
  EXPECT_NE(check_cases(same, {}, "/nowhere/pass_test.cpp", tensor_programs), "");
}

TEST(expected_text, rewrites_the_file_on_demand_and_is_content_with_it_afterwards) {
  const TextFile fresh({{"first", program(3), ""}, {"second", program(4), program(5)}});
  ::setenv("LATHE_UPDATE_EXPECTED", "1", 1);
  EXPECT_EQ(check_cases(same, {}, fresh.test.c_str(), tensor_programs), "");
  ::unsetenv("LATHE_UPDATE_EXPECTED");
  EXPECT_EQ(fresh.content(), write_cases({{"first", program(3), program(3)}, {"second", program(4), program(4)}}));
  EXPECT_EQ(check_cases(same, {}, fresh.test.c_str(), tensor_programs), "");
}

}  // namespace
}  // namespace lathe::script::testing
