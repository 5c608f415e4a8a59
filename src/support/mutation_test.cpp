#include "support/mutation.h"

#include <gtest/gtest.h>

#include <set>

namespace lathe::support {
namespace {

struct Row {
  std::string_view name, tests, meaning;
};

constexpr Row rows[] = {
#define LATHE_FAULT(name, tests, meaning) {#name, tests, meaning},
#include "support/faults.def"
#undef LATHE_FAULT
    {"", "", ""},  // so that the table may be empty
};

TEST(mutation, are_named_once_and_say_which_tests_find_them) {
  std::set<std::string_view> names;
  for (const Row& row : rows) {
    if (row.name.empty()) continue;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_NE(row.tests.find("_test"), std::string_view::npos) << row.name;
    EXPECT_FALSE(row.meaning.empty()) << row.name;
  }
}

}  // namespace
}  // namespace lathe::support
