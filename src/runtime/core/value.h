// Values of the register program: reference-counted objects of one kind each. A tensor either owns its memory through a
// Block or only refers to memory of somebody else (an arena, the weights, a caller's tensor).
#pragma once

#include <atomic>
#include <cstdint>

#include "abi/program.h"
#include "abi/runtime_kernel.h"
#include "abi/tensor_extent.h"
#include "runtime/core/account.h"
#include "runtime/core/device.h"

namespace lathe::runtime {

// Host memory that the last user frees.
struct Block {
  std::atomic<int32_t> references;
  Account* account;  // or null
  uint64_t bytes;
  void* memory;
  bool is_storage;  // of a dynamic storage: other tensors will lie there after this one
};
// Null, with the error said, when there is no memory or it passes the account's limit.
Block* make_block(Account* account, uint64_t bytes, uint64_t alignment);
void retain(Block* block);
void release(Block* block);

using abi::tensor_extent;

// The address of an empty tensor.
extern char empty_memory[64];

// How deep tuples, sequences and optionals may nest.
inline constexpr int max_depth = 64;

struct StringSlot {
  char* text;  // null when empty
  uint64_t bytes;
};

}  // namespace lathe::runtime

struct LatheValue {
  std::atomic<int32_t> references;
  lathe::abi::ValueKind kind;
  lathe::abi::Backend backend;  // of a tensor
  bool is_constant;             // a tensor in memory that must not be written to
  uint16_t rank_capacity;       // of `dims`
  uint16_t depth;               // 0, or one more than the deepest member's
  int64_t count;                // tensor, strings: elements; tuple, sequence, optional: members
  int64_t capacity;             // of members
  uint64_t bytes;               // of a tensor
  int64_t scalar;
  DLTensor tensor;  // shape is `dims`; of strings only ndim and shape count
  lathe::runtime::Block* block;
  // Of a register's object: the instruction whose operands alone decide what it is, if that was the last to fill it.
  const void* filled_by;
  // Of strings and of what has members: who these count against, and for how many bytes.
  lathe::runtime::Account* account;
  uint64_t held;
  union {
    lathe::runtime::StringSlot* strings;
    LatheValue** members;
  };
  int64_t dims[];
};

namespace lathe::runtime {

// All return null, with the error said, when there is no memory.
LatheValue* make_value(abi::ValueKind kind, uint16_t rank_capacity = 0);
LatheValue* make_owned_tensor(Account* account, DLDataType dtype, int32_t rank, const int64_t* shape);
LatheValue* make_string_tensor(int32_t rank, const int64_t* shape);
// Counts bytes more, which go with the value. False, with the error said, past the limit.
bool hold(LatheValue* value, uint64_t bytes);
// Retains the members.
LatheValue* make_members(abi::ValueKind kind, LatheValue* const* members, int64_t count);

inline LatheValue* retain(LatheValue* value) {
  if (value != nullptr) value->references.fetch_add(1, std::memory_order_relaxed);
  return value;
}
void release(LatheValue* value);

// A compact copy in row-major order of a host tensor with any strides into `to`.
void copy_strided(const DLTensor& from, void* to);
bool is_compact(const DLTensor& tensor);

// The value itself (retained) when it owns all its memory, else a copy that does. Only host tensors.
LatheValue* owned(Account* account, LatheValue* value);

bool set_string(LatheValue* value, int64_t index, const char* text, uint64_t bytes);

extern const LatheValueTable value_table;

}  // namespace lathe::runtime
