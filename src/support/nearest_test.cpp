#include "support/nearest.h"

#include <gtest/gtest.h>

namespace lathe::support {
namespace {

TEST(nearest, is_the_name_with_the_fewest_changes) {
  constexpr std::string_view known[] = {"add", "matmul", "nn.relu", "emit", "exp", "erf"};
  EXPECT_EQ(nearest("matmull", known), "matmul");
  EXPECT_EQ(nearest("nn.rely", known), "nn.relu");
  EXPECT_EQ(nearest("Emit", known), "emit");
  EXPECT_EQ(nearest("ad", known), "add");
  EXPECT_EQ(nearest("", known), "add");
  EXPECT_EQ(nearest("matmul", {}), "");
}

}  // namespace
}  // namespace lathe::support
