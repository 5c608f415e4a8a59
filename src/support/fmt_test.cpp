#include <gtest/gtest.h>

#include "support/std.h"

TEST(fmt, formats_what_needs_its_out_of_line_half) {
  EXPECT_EQ(fmt::format("{} {:.3f} {:>5} {:#x} {}", 0.1, 2.0, "ab", 255, 1e-45f), "0.1 2.000    ab 0xff 1e-45");
  EXPECT_EQ(fmt::format("{:L}", 1234567), "1234567");
}
