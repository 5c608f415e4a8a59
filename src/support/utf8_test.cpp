#include "support/utf8.h"

#include <gtest/gtest.h>

namespace lathe::support {
namespace {

TEST(utf8, every_code_point_comes_back) {
  for (uint32_t code = 0; code <= 0x10ffff; ++code) {
    std::string text = "a";
    append_utf8(text, code);
    const size_t length = utf8_length(text, 1);
    if (code >= 0xd800 && code <= 0xdfff) {
      ASSERT_EQ(length, 0u) << code;
      continue;
    }
    ASSERT_EQ(length, text.size() - 1) << code;
    ASSERT_EQ(utf8_code(text, 1, length), code);
    ASSERT_EQ(utf8_length(text.substr(0, text.size() - 1), 1), 0u) << code;
  }
}

TEST(utf8, what_is_ill_formed_has_no_length) {
  for (const std::string text : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                                 "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3(", "\xe2\x82(", "\xff", ""})
    EXPECT_EQ(utf8_length(text, 0), 0u) << text;
}

}  // namespace
}  // namespace lathe::support
