#include "support/mutation.h"

#include <gtest/gtest.h>

namespace lathe::support {
namespace {

LATHE_FAULT(mutation_of_this_test, "support_test", "nothing: this test alone asks for it");

TEST(mutation, a_fault_carries_its_name_and_is_off_unless_asked_for) {
  EXPECT_EQ(mutation_of_this_test.name, "mutation_of_this_test");
  EXPECT_FALSE(flip(mutation_of_this_test));
}

}  // namespace
}  // namespace lathe::support
