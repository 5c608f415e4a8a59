// What the kernels on strings share: operands of a call as numbers of strings, texts by number, results.
//
// The kernels see the C library, the tables they are handed, and nothing else: they are linked into artifacts.
#pragma once

#include <cstdint>

#include "abi/kernel_attributes.h"
#include "abi/runtime_kernel.h"

namespace lathe::strings {

using abi::AttributeReader;
using abi::Text;

inline constexpr DLDataType string_number = {kDLOpaqueHandle, 64, 1};
inline constexpr DLDataType int64_type = {kDLInt, 64, 1};
inline constexpr DLDataType bool_type = {kDLBool, 8, 1};

// One call. What fails has raised why; the kernel then returns `failed()`.
class Call {
 public:
  explicit Call(const LatheRuntimeCall* call)
      : attributes(call->attributes, call->attribute_bytes), call_(*call), values_(*call->values) {}

  AttributeReader attributes;

  // Operand i: a compact tensor of that type. Null when it is none.
  const DLTensor* operand(int64_t i, DLDataType dtype);
  const DLTensor* any_operand(int64_t i);
  // The string of that number.
  bool text(int64_t number, Text* text);
  // Its number, or a negative one.
  int64_t number_of(const char* text, uint64_t bytes) { return values_.number_of(call_.call_state, text, bytes); }
  // A new tensor as result i; null when there is no memory.
  void* result(int64_t i, DLDataType dtype, int32_t rank, const int64_t* shape);
  // Scratch memory that ends with the call.
  void* scratch(uint64_t count, uint64_t element);

  int32_t raise(int32_t code, const char* message);
  int32_t wrong_attributes() { return raise(LATHE_INVALID_ARTIFACT, "the attributes of the kernel are damaged"); }
  int32_t failed() const { return LATHE_VALUE_FAILED; }
  // Whether the run is to end; asked now and then by what may take long.
  bool is_stopped() const {
    return __atomic_load_n(&static_cast<const LatheCallState*>(call_.call_state)->stop, __ATOMIC_RELAXED) != 0;
  }
  int32_t stop() { return call_.services->stop(call_.call_state); }

 private:
  const LatheRuntimeCall& call_;
  const LatheValueTable& values_;
};

inline int64_t count_of(const DLTensor& tensor) {
  int64_t count = 1;
  for (int32_t d = 0; d < tensor.ndim; ++d) count *= tensor.shape[d];
  return count;
}
inline const int64_t* numbers(const DLTensor& tensor) { return static_cast<const int64_t*>(tensor.data); }

// Bytes that grow; freed at the end of the scope.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();
  // False when there is no memory.
  bool add(const char* bytes, uint64_t count);
  void clear() { count_ = 0; }
  const char* data() const { return bytes_; }
  uint64_t size() const { return count_; }

 private:
  char* bytes_ = nullptr;
  uint64_t count_ = 0, capacity_ = 0;
};

// One code point of UTF-8 at `at`, which moves behind it; U+FFFD for a byte that begins none. `at` is before `end`.
uint32_t decode(const char** at, const char* end);
// Its bytes, one to four; the count.
int encode(uint32_t code, char* bytes);
// By the simple mapping of Unicode: one code point becomes one.
uint32_t lower_case(uint32_t code);
uint32_t upper_case(uint32_t code);

}  // namespace lathe::strings
