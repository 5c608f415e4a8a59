// The interpreter's memory: bytes with a shadow that says which bits hold a value.
#pragma once

#include "tir/interpret/interpret.h"
#include "tir/interpret/scalar.h"

namespace lathe::tir::interpreter {

// Reads or writes `bits` (1 to 64) bits at bit offset `at`, low bits first.
uint64_t read_bits(const uint8_t* bytes, int64_t at, int64_t bits);
void write_bits(uint8_t* bytes, int64_t at, int64_t bits, uint64_t value);

// One allocation: an argument's bytes, or memory of the function's own.
struct Memory {
  std::string name;
  uint8_t* bytes = nullptr;
  int64_t size = 0;                         // bytes
  std::vector<uint8_t>* written = nullptr;  // null or empty: all of it
  std::vector<uint8_t> own_bytes, own_written;

  bool holds_value(int64_t at, int64_t bits) const;
  void mark_written(int64_t at, int64_t bits);
};

// Fresh memory of `size` bytes; nothing in it may be read yet.
std::unique_ptr<Memory> fresh_memory(std::string name, int64_t size);

}  // namespace lathe::tir::interpreter
