#include "support/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace lathe::support {
namespace {

TEST(environment, has_each_variable_once_and_says_what_it_means) {
  std::set<std::string_view> variables;
  for (const Knob& knob : knobs()) {
    EXPECT_TRUE(variables.insert(knob.variable).second) << knob.variable;
    EXPECT_TRUE(knob.side == "compiler" || knob.side == "runtime") << knob.side;
    EXPECT_GT(knob.meaning.size(), 10u) << knob.variable;
  }
  EXPECT_TRUE(variables.contains("LATHE_DEBUG"));
}

TEST(environment, takes_the_default_where_a_variable_is_not_set) {
  unsetenv("LATHE_DEBUG");
  EXPECT_EQ(read_environment().debug, "0");
  setenv("LATHE_DEBUG", "3", 1);
  EXPECT_EQ(read_environment().debug, "3");
  unsetenv("LATHE_DEBUG");
}

TEST(environment, reads_the_debug_ladder_from_what_users_write) {
  const auto level = [](const char* text) {
    Environment environment;
    environment.debug = text;
    return debug_level(environment);
  };
  EXPECT_EQ(level("2"), 2);
  EXPECT_EQ(level("99"), 5);
  EXPECT_EQ(level("-4"), 0);
  EXPECT_EQ(level(""), 0);
  EXPECT_EQ(level("2x"), 0);
  EXPECT_EQ(level("99999999999999999999"), 0);
}

TEST(environment, has_a_ladder_without_gaps) {
  int expected = 1;
  for (const DebugLevel& row : debug_ladder()) EXPECT_EQ(row.level, expected++);
  EXPECT_EQ(expected, 6);
}

}  // namespace
}  // namespace lathe::support
