#include "driver/reduce/shrink_script.h"

#include <gtest/gtest.h>

#include "driver/script_file.h"

namespace lathe::driver {
namespace {

constexpr const char* two_loops = R"(# lathe script 1
@T.prim_func
def main(A: T.Buffer((64, 12), "float32"), B: T.Buffer((64, 12), "float32")):
    for i, j in T.grid(64, 12):
        with T.block("first"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = A[v, w] + T.float32(1)
    for i in range(64):
        for j in range(12):
            with T.block("second"):
                v = T.axis.spatial(64, i)
                w = T.axis.spatial(12, j)
                B[v, w] = T.exp(A[v, w])
)";

size_t lines_in(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

// Whether it is a program, tried by a file as the command does.
bool parses(const std::string& text) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "lathe_shrink_script_test.tir";
  std::ofstream(path, std::ios::binary) << text;
  const bool read = read_script(path.string()).ok();
  std::filesystem::remove(path);
  return read;
}

TEST(shrink_script, keeps_the_one_statement_that_matters) {
  const auto has_exp = [](const std::string& text) { return text.find("T.exp(") != std::string::npos && parses(text); };
  ASSERT_TRUE(has_exp(two_loops));
  const std::string small = shrink_script(two_loops, has_exp);
  EXPECT_EQ(small.find("first"), std::string::npos) << small;
  EXPECT_EQ(small.find("64"), std::string::npos) << small;
  EXPECT_EQ(small.find("for "), std::string::npos) << small;
  EXPECT_LE(lines_in(small), 6u) << small;
  EXPECT_TRUE(has_exp(small));
}

TEST(shrink_script, replaces_a_loop_by_its_first_turn) {
  const auto holds = [](const std::string& text) { return text.find("A[0, 0]") != std::string::npos; };
  const std::string small = shrink_script("for i, j in T.grid(4, 5):\n    B[i] = A[i, j]\n    x.i = i\n", holds);
  EXPECT_EQ(small, "B[0] = A[0, 0]\n");
}

TEST(shrink_script, leaves_what_may_not_change) {
  const std::string text = two_loops;
  EXPECT_EQ(shrink_script(text, [](const std::string&) { return false; }), text);
}

TEST(shrink_script, tries_no_more_than_it_may) {
  int asked = 0;
  ShrinkScriptOptions options{.most_attempts = 3};
  shrink_script(two_loops, [&](const std::string&) { return ++asked > 100; }, options);
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace lathe::driver
