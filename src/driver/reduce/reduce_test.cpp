#include "driver/reduce/reduce.h"

#include <gtest/gtest.h>

#include <fstream>

namespace lathe::driver {
namespace {

namespace fs = std::filesystem;

class ReduceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("lathe_reduce_test_{}", ::getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  std::string small() const { return (folder_ / "small.tir").string(); }
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path folder_;
};

constexpr const char* program = R"(# lathe script 1
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("first"):
            v = T.axis.spatial(16, i)
            B[v] = T.sqrt(A[v])
    for i in range(16):
        with T.block("second"):
            v = T.axis.spatial(16, i)
            B[v] = T.exp(A[v])
)";

TEST_F(ReduceTest, keeps_what_fails_as_the_whole_did) {
  const std::string path = write("a b.tir", program);
  const ReduceOptions options{.command = "grep -q exp {model} && echo \"'$RANDOM' at 17\" && exit 3",
                              .output = small()};
  const Reduced made = reduce(path, options).value_or_throw();
  EXPECT_EQ(made.failure, "exit code 3: '…' at #");
  EXPECT_GT(made.kept, 0);
  const std::string left = read(small());
  EXPECT_NE(left.find("T.exp"), std::string::npos);
  EXPECT_EQ(left.find("T.sqrt"), std::string::npos);
}

TEST_F(ReduceTest, asks_for_the_same_words) {
  const std::string path = write("m.tir", program);
  // Without sqrt it fails, too, and says something else.
  const ReduceOptions options{.command = "grep -q sqrt {model} && echo one || echo other; exit 1", .output = small()};
  reduce(path, options).value_or_throw();
  EXPECT_NE(read(small()).find("T.sqrt"), std::string::npos);
}

TEST_F(ReduceTest, refuses_what_does_not_fail) {
  const std::string path = write("m.tir", program);
  for (const char* command : {"true", "cat"}) {
    const auto made = reduce(path, {.command = command, .output = small()});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.diagnostics()[0].code.name, "reduce-no-failure");
  }
  const auto silent = reduce(path, {.command = "false", .saying = "words", .output = small()});
  ASSERT_FALSE(silent.ok());
  EXPECT_EQ(silent.diagnostics()[0].code.name, "reduce-no-failure");
  EXPECT_EQ(
      reduce((folder_ / "absent.onnx").string(), {.command = "false", .output = small()}).diagnostics()[0].code.name,
      "reduce-no-file");
}

TEST(run_shell, tells_how_a_command_ended) {
  EXPECT_EQ(run_shell("exit 7", 10).code, 7);
  EXPECT_EQ(run_shell("kill -SEGV $$", 10).code, 128 + 11);
  const CommandOutcome words = run_shell("echo out; echo err >&2", 10);
  EXPECT_EQ(words.said, "out\nerr\n");
  const auto start = std::chrono::steady_clock::now();
  const CommandOutcome late = run_shell("sleep 60 & sleep 60", 0.2);
  EXPECT_TRUE(late.timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(gist_of, leaves_out_names_numbers_and_paths) {
  EXPECT_EQ(gist_of("\n/tmp/x/m.onnx, node 'Add_12': [8, 128] is no [8]\nmore"), "#, node '…': [#, #] is no [#]");
}

}  // namespace
}  // namespace lathe::driver
