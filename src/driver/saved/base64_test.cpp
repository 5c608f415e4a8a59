#include "driver/saved/base64.h"

#include <gtest/gtest.h>

namespace lathe::driver::saved {
namespace {

// RFC 4648, section 10.
TEST(base64, writes_what_the_standard_says) {
  const std::pair<std::string_view, std::string_view> rows[] = {{"", ""},
                                                                {"f", "Zg=="},
                                                                {"fo", "Zm8="},
                                                                {"foo", "Zm9v"},
                                                                {"foob", "Zm9vYg=="},
                                                                {"fooba", "Zm9vYmE="},
                                                                {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : rows) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(base64, keeps_every_byte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  for (size_t size = 0; size <= all.size(); ++size)
    EXPECT_EQ(from_base64(to_base64(all.substr(size))), all.substr(size));
}

TEST(base64, refuses_what_it_does_not_write) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "=", "====", "Z===", "Zh==", "Zm9=", "Zm 8", "Zm8=Zm8=", "Zm\n8",
                           "Zm9_", "\xff\xff\xff\xff"})
    EXPECT_FALSE(from_base64(text)) << text;
}

}  // namespace
}  // namespace lathe::driver::saved
