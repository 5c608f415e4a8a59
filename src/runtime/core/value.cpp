#include "runtime/core/value.h"

#include <cstdlib>
#include <cstring>

#include "runtime/core/error.h"

namespace lathe::runtime {

alignas(64) char empty_memory[64];

namespace {

// What a tensor takes beside its elements: a sequence of small ones is bounded by the limit too.
constexpr uint64_t bytes_beside_elements = sizeof(Block) + sizeof(LatheValue) + 64;

void free_memory(void* memory) { cpu_device().release(nullptr, abi::Scope::global, memory); }

}  // namespace

Block* make_block(Account* account, uint64_t bytes, uint64_t alignment) {
  void* memory = take_result(account, bytes, alignment);
  // What was kept is counted already.
  if (!charge(account, (memory == nullptr ? bytes : 0) + bytes_beside_elements)) {
    if (memory != nullptr && !keep_result(account, memory, bytes)) {
      free_memory(memory);
      discharge(account, bytes);
    }
    return nullptr;
  }
  if (memory == nullptr) memory = cpu_device().allocate(nullptr, abi::Scope::global, bytes, alignment);
  auto* block = memory == nullptr ? nullptr : static_cast<Block*>(std::calloc(1, sizeof(Block)));
  if (block == nullptr) {
    if (memory != nullptr) free_memory(memory);
    discharge(account, bytes + bytes_beside_elements);
    fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for a tensor of %llu bytes",
         static_cast<unsigned long long>(bytes));
    return nullptr;
  }
  if (account != nullptr) account->references.fetch_add(1, std::memory_order_relaxed);
  block->references = 1;
  block->account = account;
  block->bytes = bytes;
  block->memory = memory;
  return block;
}

void retain(Block* block) {
  if (block != nullptr) block->references.fetch_add(1, std::memory_order_relaxed);
}

void release(Block* block) {
  if (block == nullptr || block->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const bool is_kept = keep_result(block->account, block->memory, block->bytes);
  if (!is_kept) free_memory(block->memory);
  discharge(block->account, (is_kept ? 0 : block->bytes) + bytes_beside_elements);
  release(block->account);
  std::free(block);
}

// ---- values ----

LatheValue* make_value(abi::ValueKind kind, uint16_t rank_capacity) {
  auto* value = static_cast<LatheValue*>(std::calloc(1, sizeof(LatheValue) + rank_capacity * sizeof(int64_t)));
  if (value == nullptr) {
    fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for a value");
    return nullptr;
  }
  value->references = 1;
  value->kind = kind;
  value->rank_capacity = rank_capacity;
  value->tensor.shape = value->dims;
  value->tensor.device = {kDLCPU, 0};
  return value;
}

bool hold(LatheValue* value, uint64_t bytes) {
  if (value->account == nullptr) {
    value->account = current_account();
    if (value->account == nullptr) return true;
    value->account->references.fetch_add(1, std::memory_order_relaxed);
  }
  if (!charge(value->account, bytes)) return false;
  value->held += bytes;
  return true;
}

namespace {

void let_go(LatheValue* value, uint64_t bytes) {
  if (value->account == nullptr) return;
  if (bytes > value->held) bytes = value->held;  // the rest was there before the account
  discharge(value->account, bytes);
  value->held -= bytes;
}

}  // namespace

LatheValue* make_owned_tensor(Account* account, DLDataType dtype, int32_t rank, const int64_t* shape) {
  int64_t count = 0;
  uint64_t bytes = 0;
  if (rank < 0 || rank > static_cast<int32_t>(abi::max_rank) || !tensor_extent(dtype, rank, shape, &count, &bytes)) {
    fail(LATHE_INVALID_ARGUMENT, nullptr, "a tensor cannot have the shape %s", shape_text(shape, rank).text);
    return nullptr;
  }
  LatheValue* value = make_value(abi::ValueKind::tensor, static_cast<uint16_t>(rank));
  if (value == nullptr) return nullptr;
  value->block = make_block(account, bytes, 64);
  if (value->block == nullptr) {
    std::free(value);
    return nullptr;
  }
  value->count = count;
  value->bytes = bytes;
  value->tensor.data = value->block->memory;
  value->tensor.dtype = dtype;
  value->tensor.ndim = rank;
  for (int32_t i = 0; i < rank; ++i) value->dims[i] = shape[i];
  return value;
}

LatheValue* make_string_tensor(int32_t rank, const int64_t* shape) {
  int64_t count = 0;
  uint64_t bytes = 0;
  const DLDataType slot = {kDLOpaqueHandle, 128, 1};
  if (rank < 0 || rank > static_cast<int32_t>(abi::max_rank) || !tensor_extent(slot, rank, shape, &count, &bytes)) {
    fail(LATHE_INVALID_ARGUMENT, nullptr, "a tensor of strings cannot have the shape %s", shape_text(shape, rank).text);
    return nullptr;
  }
  LatheValue* value = make_value(abi::ValueKind::strings, static_cast<uint16_t>(rank));
  if (value == nullptr) return nullptr;
  if (!hold(value, bytes + sizeof(LatheValue))) {
    release(value);
    return nullptr;
  }
  value->strings =
      static_cast<StringSlot*>(std::calloc(count == 0 ? 1 : static_cast<uint64_t>(count), sizeof(StringSlot)));
  if (value->strings == nullptr) {
    release(value);
    fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for %lld strings", static_cast<long long>(count));
    return nullptr;
  }
  value->count = count;
  value->tensor.ndim = rank;
  for (int32_t i = 0; i < rank; ++i) value->dims[i] = shape[i];
  return value;
}

bool set_string(LatheValue* value, int64_t index, const char* text, uint64_t bytes) {
  char* copy = nullptr;
  if (!hold(value, bytes)) return false;
  if (bytes > 0) {
    copy = static_cast<char*>(std::malloc(bytes));
    if (copy == nullptr) {
      let_go(value, bytes);
      fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for a string of %llu bytes",
           static_cast<unsigned long long>(bytes));
      return false;
    }
    std::memcpy(copy, text, bytes);
  }
  std::free(value->strings[index].text);
  let_go(value, value->strings[index].bytes);
  value->strings[index] = {copy, bytes};
  return true;
}

LatheValue* make_members(abi::ValueKind kind, LatheValue* const* members, int64_t count) {
  LatheValue* value = make_value(kind);
  if (value == nullptr) return nullptr;
  if (!hold(value, static_cast<uint64_t>(count) * sizeof(LatheValue*) + sizeof(LatheValue))) {
    release(value);
    return nullptr;
  }
  value->members =
      static_cast<LatheValue**>(std::calloc(count == 0 ? 1 : static_cast<uint64_t>(count), sizeof(LatheValue*)));
  if (value->members == nullptr) {
    release(value);
    fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for %lld elements", static_cast<long long>(count));
    return nullptr;
  }
  value->count = count;
  value->capacity = count;
  for (int64_t i = 0; i < count; ++i) {
    value->members[i] = retain(members[i]);
    if (members[i]->depth >= value->depth) value->depth = static_cast<uint16_t>(members[i]->depth + 1);
  }
  if (value->depth <= max_depth) return value;
  release(value);
  fail(LATHE_LIMIT_REACHED, nullptr, "tuples, sequences and optionals nest deeper than %d", max_depth);
  return nullptr;
}

void release(LatheValue* value) {
  if (value == nullptr || value->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  switch (value->kind) {
    case abi::ValueKind::strings:
      for (int64_t i = 0; i < value->count; ++i) std::free(value->strings[i].text);
      std::free(value->strings);
      break;
    case abi::ValueKind::tuple:
    case abi::ValueKind::sequence:
    case abi::ValueKind::optional:
      for (int64_t i = 0; i < value->count; ++i) release(value->members[i]);  // max_depth bounds the recursion
      std::free(value->members);
      break;
    case abi::ValueKind::tensor:
      release(value->block);
      break;
    case abi::ValueKind::empty:
    case abi::ValueKind::scalar:
      break;
  }
  discharge(value->account, value->held);
  release(value->account);
  std::free(value);
}

bool is_compact(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  int64_t expected = 1;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] == 0) return true;
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

void copy_strided(const DLTensor& from, void* to) {
  int64_t count = 0;
  uint64_t bytes = 0;
  if (!tensor_extent(from.dtype, from.ndim, from.shape, &count, &bytes) || count == 0) return;
  const char* source = static_cast<const char*>(from.data) + from.byte_offset;
  auto* target = static_cast<char*>(to);
  if (is_compact(from)) {
    std::memmove(to, source, bytes);
    return;
  }
  const int64_t element = from.dtype.bits * from.dtype.lanes / 8;
  int64_t index[abi::max_rank] = {};
  const int32_t last = from.ndim - 1;
  for (;;) {
    for (int64_t i = 0; i < from.shape[last]; ++i, target += element)
      std::memcpy(target, source + i * from.strides[last] * element, static_cast<size_t>(element));
    int32_t axis = last - 1;
    for (; axis >= 0; --axis) {
      source += from.strides[axis] * element;
      if (++index[axis] < from.shape[axis]) break;
      source -= from.strides[axis] * element * from.shape[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

LatheValue* owned(Account* account, LatheValue* value) {
  switch (value->kind) {
    case abi::ValueKind::tensor: {
      if (value->block != nullptr && !value->block->is_storage) return retain(value);
      LatheValue* copy = make_owned_tensor(account, value->tensor.dtype, value->tensor.ndim, value->dims);
      if (copy != nullptr && value->bytes > 0) std::memcpy(copy->tensor.data, value->tensor.data, value->bytes);
      return copy;
    }
    case abi::ValueKind::tuple: {
      LatheValue* copy = make_members(value->kind, value->members, value->count);
      for (int64_t i = 0; copy != nullptr && i < copy->count; ++i) {
        LatheValue* member = owned(account, copy->members[i]);  // max_depth bounds the recursion
        if (member == nullptr) {
          release(copy);
          return nullptr;
        }
        release(copy->members[i]);
        copy->members[i] = member;
      }
      return copy;
    }
    case abi::ValueKind::empty:
    case abi::ValueKind::scalar:
    case abi::ValueKind::strings:
    case abi::ValueKind::sequence:  // their members were made owned when they were put in
    case abi::ValueKind::optional:
      return retain(value);
  }
  __builtin_unreachable();
}

}  // namespace lathe::runtime
