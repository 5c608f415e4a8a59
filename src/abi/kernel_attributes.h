// The attributes of a runtime kernel's call as bytes: words of eight bytes, little-endian; a text is its length as a
// word, then its bytes, filled up to whole words with zeros. Read as they come from an artifact: nothing of them is
// trusted.
#pragma once

#include <cstdint>
#include <cstring>

namespace lathe::abi {

struct Text {
  const char* at = "";
  uint64_t bytes = 0;
};

class AttributeReader {
 public:
  AttributeReader(const void* bytes, uint64_t size) : at_(static_cast<const char*>(bytes)), left_(size) {}

  bool word(int64_t* value) {
    if (left_ < sizeof(*value)) return false;
    std::memcpy(value, at_, sizeof(*value));
    skip(sizeof(*value));
    return true;
  }
  bool text(Text* value) {
    int64_t bytes = 0;
    if (!word(&bytes) || bytes < 0 || static_cast<uint64_t>(bytes) > left_) return false;
    *value = {at_, static_cast<uint64_t>(bytes)};
    const uint64_t whole = (value->bytes + 7) / 8 * 8;
    skip(whole < left_ ? whole : left_);
    return true;
  }
  // `count` words that follow each other.
  bool words(uint64_t count, const char** value) {
    if (count > left_ / sizeof(int64_t)) return false;
    *value = at_;
    skip(count * sizeof(int64_t));
    return true;
  }
  bool is_at_end() const { return left_ == 0; }

 private:
  void skip(uint64_t bytes) {
    at_ += bytes;
    left_ -= bytes;
  }
  const char* at_;
  uint64_t left_;
};

}  // namespace lathe::abi
