#include "support/hash.h"

namespace lathe::support {

std::string Hash128::hex() const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text(32, '0');
  for (int i = 0; i < 16; ++i) {
    text[15 - i] = digits[(high >> (4 * i)) & 15];
    text[31 - i] = digits[(low >> (4 * i)) & 15];
  }
  return text;
}

void Hasher::add(std::string_view bytes) {
  add(static_cast<uint64_t>(bytes.size()));
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    add(word);
  }
  if (i < bytes.size()) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, bytes.size() - i);
    add(word);
  }
}

namespace {

// Lanes that do not wait for one another. A round is invertible in the state and in the word, so contents that differ
// in one word of a lane never meet in it; two differences that cancel out in one half of the state do not in the other.
constexpr size_t lanes = 4, stripe = lanes * sizeof(uint64_t), many_bytes = 4096;

// The whole stripes of `bytes`.
void add_stripes(Hasher& hasher, std::string_view bytes) {
  uint64_t high[lanes], low[lanes];
  for (size_t i = 0; i < lanes; ++i) high[i] = low[i] = 0x243f6a8885a308d3ULL * (2 * i + 1);
  for (size_t at = 0; at + stripe <= bytes.size(); at += stripe) {
    uint64_t words[lanes];
    std::memcpy(words, bytes.data() + at, stripe);
    for (size_t i = 0; i < lanes; ++i) {
      high[i] = std::rotl(high[i] ^ words[i], 29) * 0x9fb21c651e98df25ULL;
      low[i] = std::rotl(low[i] + words[i], 37) * 0xd6e8feb86659fd93ULL;
    }
  }
  for (size_t i = 0; i < lanes; ++i) {
    hasher.add(high[i]);
    hasher.add(low[i]);
  }
}

}  // namespace

Hash128 hash_bytes(std::string_view bytes) {
  Hasher hasher;
  if (bytes.size() < many_bytes) {
    hasher.add(bytes);
    return hasher.finish();
  }
  hasher.add(static_cast<uint64_t>(bytes.size()));
  add_stripes(hasher, bytes);
  hasher.add(bytes.substr(bytes.size() / stripe * stripe));
  return hasher.finish();
}

}  // namespace lathe::support
