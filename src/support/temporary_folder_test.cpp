#include "support/temporary_folder.h"

#include <gtest/gtest.h>

namespace lathe::support {
namespace {

namespace fs = std::filesystem;

TEST(temporary_folder, goes_with_what_is_in_it) {
  fs::path path;
  {
    const TemporaryFolder folder = TemporaryFolder::of_the_system("test");
    path = folder.path();
    ASSERT_TRUE(fs::is_directory(path)) << folder.error();
    EXPECT_EQ(path.filename().string().rfind("lathe-test-", 0), 0);
    std::ofstream(path / "file") << "text";
    fs::create_directories(path / "deep" / "deeper");
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(temporary_folder, says_why_there_is_none) {
  const TemporaryFolder folder("/no/such/folder/x");
  EXPECT_TRUE(folder.path().empty());
  EXPECT_EQ(folder.error(), "No such file or directory");
}

}  // namespace
}  // namespace lathe::support
