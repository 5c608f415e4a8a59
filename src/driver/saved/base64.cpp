#include "driver/saved/base64.h"

namespace lathe::driver::saved {
namespace {

constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// The value of each character as a digit; -1: none.
constexpr std::array<int8_t, 256> digit_values = [] {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < digits.size(); ++i) values[static_cast<uint8_t>(digits[i])] = static_cast<int8_t>(i);
  return values;
}();

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t word = 0;
    for (size_t i = 0; i < 3; ++i) word = word << 8 | (i < count ? static_cast<uint8_t>(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i) text += i <= count ? digits[word >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t at = 0; at < text.size(); at += 4) {
    const size_t count = at + 4 == text.size() ? 4 - padding : 4;
    uint32_t word = 0;
    for (size_t i = 0; i < 4; ++i) {
      const int value = i < count ? digit_values[static_cast<uint8_t>(text[at + i])] : 0;
      if (value < 0) return std::nullopt;
      word = word << 6 | static_cast<uint32_t>(value);
    }
    if (count < 4 && (word & ((1u << (8 * (4 - count))) - 1)) != 0) return std::nullopt;  // bits that no byte takes
    for (size_t i = 0; i + 1 < count; ++i) bytes += static_cast<char>(word >> (16 - 8 * i));
  }
  return bytes;
}

}  // namespace lathe::driver::saved
