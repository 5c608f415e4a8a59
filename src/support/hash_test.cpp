#include "support/hash.h"

#include <gtest/gtest.h>

#include <set>

namespace lathe::support {
namespace {

std::string content(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * i * 31 + i / 7);
  return bytes;
}

TEST(hash_bytes, depends_on_every_bit_and_on_the_size) {
  for (const size_t size : {1, 8, 63, 200, 4095, 4096, 4097, 5000}) {
    std::string bytes = content(size);
    std::set<Hash128> seen = {hash_bytes(bytes), hash_bytes(bytes + '\0'), hash_bytes(bytes.substr(1))};
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
      seen.insert(hash_bytes(bytes));
      bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
    }
    EXPECT_EQ(seen.size(), 8 * size + 3) << size;
  }
}

TEST(hash_bytes, depends_on_the_order_of_words) {
  const std::string bytes = content(8 * 520);
  std::set<Hash128> seen;
  for (size_t a = 0; a < 64; ++a)
    for (size_t b = a + 1; b < 64; ++b) {
      std::string swapped = bytes;
      for (size_t i = 0; i < 8; ++i) std::swap(swapped[8 * a + i], swapped[8 * b + i]);
      seen.insert(hash_bytes(swapped));
    }
  EXPECT_EQ(seen.size(), 64u * 63 / 2);
}

TEST(hash_bytes, tells_zeros_of_each_length_apart) {
  std::set<Hash128> seen;
  for (size_t size = 0; size < 6000; ++size) seen.insert(hash_bytes(std::string(size, '\0')));
  EXPECT_EQ(seen.size(), 6000u);
}

TEST(hash_bytes, is_the_same_wherever_the_bytes_lie) {
  const std::string bytes = content(7777);
  std::string padded = "x" + bytes;
  EXPECT_EQ(hash_bytes(bytes), hash_bytes(std::string_view(padded).substr(1)));
}

}  // namespace
}  // namespace lathe::support
