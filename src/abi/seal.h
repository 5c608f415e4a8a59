// A seal at the end of a saved shared library: a sum over its bytes, so that a damaged file is refused before the
// system's loader trusts it. It guards against accidents, not against malice: an artifact is code, and whoever opens it
// runs it. The weights may be left out, so that opening does not have to read them. A file without a seal (linked by
// hand from an object) opens too.
#pragma once

#include <cstdint>
#include <cstring>

namespace lathe::abi {

inline constexpr char seal_magic[8] = {'L', 'T', 'H', 'S', 'E', 'A', 'L', '1'};

struct Seal {                        // the last bytes of the file
  uint64_t skip_offset, skip_bytes;  // what the sum leaves out
  uint64_t file_bytes;               // of the file with the seal
  uint64_t sum[2];
  char magic[8];
};
static_assert(sizeof(Seal) == 48);

struct SealSum {
  uint64_t low = 0x9E3779B97F4A7C15u, high = 0xC2B2AE3D27D4EB4Fu;

  void word(uint64_t value) {
    low = (low ^ value) * 0x9FB21C651E98DF25u;
    low ^= low >> 29;
    high = (high + value) * 0xD6E8FEB86659FD93u;
    high ^= high >> 32;
  }
  void bytes(const void* data, uint64_t size) {
    const auto* at = static_cast<const char*>(data);
    for (; size >= 8; at += 8, size -= 8) {
      uint64_t value;
      std::memcpy(&value, at, 8);
      word(value);
    }
    uint64_t rest = size << 56;
    if (size > 0) std::memcpy(&rest, at, size);
    word(rest ^ size);
  }
};

// The seal to append to these bytes.
inline Seal make_seal(const void* data, uint64_t size, uint64_t skip_offset = 0, uint64_t skip_bytes = 0) {
  Seal seal = {skip_offset, skip_bytes, size + sizeof(Seal), {}, {}};
  const auto* at = static_cast<const char*>(data);
  SealSum sum;
  sum.bytes(at, skip_offset);
  sum.bytes(at + skip_offset + skip_bytes, size - skip_offset - skip_bytes);
  sum.word(skip_offset);
  sum.word(skip_bytes);
  seal.sum[0] = sum.low;
  seal.sum[1] = sum.high;
  std::memcpy(seal.magic, seal_magic, sizeof(seal_magic));
  return seal;
}

enum class SealState { absent, intact, broken };

inline SealState check_seal(const void* data, uint64_t size) {
  Seal seal;
  if (size < sizeof(Seal)) return SealState::absent;
  std::memcpy(&seal, static_cast<const char*>(data) + size - sizeof(Seal), sizeof(Seal));
  if (std::memcmp(seal.magic, seal_magic, sizeof(seal_magic)) != 0) return SealState::absent;
  const uint64_t body = size - sizeof(Seal);
  if (seal.file_bytes != size || seal.skip_offset > body || seal.skip_bytes > body - seal.skip_offset)
    return SealState::broken;
  const Seal expected = make_seal(data, body, seal.skip_offset, seal.skip_bytes);
  return expected.sum[0] == seal.sum[0] && expected.sum[1] == seal.sum[1] ? SealState::intact : SealState::broken;
}

}  // namespace lathe::abi
