// A 128-bit streaming hash for cache keys and structural hashes: stable across processes and machines, not
// cryptographic. Two 64-bit lanes, each a multiply-rotate round (the constants are the golden ratio and primes).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace lathe::support {

struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
  std::string hex() const;  // 32 lower-case digits
};

class Hasher {
 public:
  void add(uint64_t word) {
    high_ = std::rotl(high_ ^ (word * 0x9e3779b97f4a7c15ULL), 27) * 0xff51afd7ed558ccdULL + 0x52dce729ULL;
    low_ = std::rotl(low_ + (word ^ 0xc2b2ae3d27d4eb4fULL) * 0x87c37b91114253d5ULL, 31) * 0x4cf5ad432745937fULL;
    low_ ^= high_ >> 29;
    ++count_;
  }
  void add(std::string_view bytes);
  Hash128 finish() const {
    Hasher copy = *this;
    copy.add(count_);
    copy.add(copy.low_ ^ std::rotl(copy.high_, 32));
    return {copy.high_ ^ (copy.low_ >> 31), copy.low_ ^ (copy.high_ >> 33)};
  }

 private:
  uint64_t high_ = 0x243f6a8885a308d3ULL;
  uint64_t low_ = 0x13198a2e03707344ULL;
  uint64_t count_ = 0;
};

// Of contents of any size, many megabytes among them: as fast as memory is read.
Hash128 hash_bytes(std::string_view bytes);

}  // namespace lathe::support

template <>
struct std::hash<lathe::support::Hash128> {
  size_t operator()(const lathe::support::Hash128& h) const { return h.low; }
};
