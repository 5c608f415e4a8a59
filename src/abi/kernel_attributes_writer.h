// Writes what kernel_attributes.h reads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lathe::abi {

class AttributeWriter {
 public:
  AttributeWriter& word(int64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  AttributeWriter& text(std::string_view value) {
    word(static_cast<int64_t>(value.size()));
    bytes_.append(value);
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace lathe::abi
