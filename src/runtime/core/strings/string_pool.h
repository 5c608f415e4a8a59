// The strings of one run, each once. Tensors of strings hold their numbers, so that compiled code moves and compares
// strings without knowing them: equal strings have equal numbers, and 0 is the empty string.
#pragma once

#include "runtime/core/value.h"
#include "runtime/core/vector.h"

namespace lathe::runtime {

class StringPool {
 public:
  // The bytes stay where they are until the pool is cleared. Null for a number that no string has.
  const char* text(int64_t number, uint64_t* bytes) const;
  // Negative, with the error said, when there is no memory or it passes the limit.
  int64_t number_of(const char* text, uint64_t bytes);
  // Forgets all strings and gives their memory back.
  void clear();
  ~StringPool() { clear(); }

 private:
  struct Entry {
    const char* text;
    uint64_t bytes, hash;
  };
  struct Chunk;

  char* copy_of(const char* text, uint64_t bytes);
  bool grow();
  bool add(const Entry& entry);

  Account* account_ = nullptr;  // of the run: what is held counts against it
  uint64_t held_ = 0;
  Vector<Entry> entries_;    // entry i is string i + 1
  Vector<uint32_t> places_;  // open addressing by hash, a power of two of them: 0, or a string's number
  Chunk* chunks_ = nullptr;  // of texts; the first has room
  uint64_t room_ = 0;        // bytes left in it
};

// The kind of tensor that holds numbers of strings.
inline constexpr DLDataType string_number = {kDLOpaqueHandle, 64, 1};

// A value of the outside with its tensors of strings as tensors of numbers, and back; a value without any is retained.
// Null with the error said.
LatheValue* with_numbers(StringPool& pool, Account* account, LatheValue* value);
LatheValue* with_strings(const StringPool& pool, LatheValue* value);

}  // namespace lathe::runtime
