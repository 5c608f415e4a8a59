// Runtime kernels: the operators no code is generated for (strings, sequences, sizes decided by data, images). They
// take and give values of any kind. A kernel reaches values only through the table it is handed, so an archive of
// kernels links into an artifact without linking the runtime.
#pragma once

#include "lathe.h"
#include "services.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LATHE_VALUE_TABLE_VERSION 1u

// The lathe_value_* functions of lathe.h, with their contracts; grows only at its end. Memory made here counts towards
// the context's limit.
typedef struct LatheValueTable {
  uint32_t version;
  uint32_t size;
  int32_t (*kind)(const LatheValue* value);
  LatheValue* (*retain)(LatheValue* value);
  void (*release)(LatheValue* value);
  LatheValue* (*make_tensor)(DLDataType dtype, int32_t rank, const int64_t* shape);
  const DLTensor* (*tensor)(const LatheValue* value);
  LatheValue* (*make_scalar)(int64_t scalar);
  int64_t (*scalar)(const LatheValue* value);
  LatheValue* (*make_strings)(int32_t rank, const int64_t* shape);
  int32_t (*strings_shape)(const LatheValue* value, int32_t* rank, const int64_t** shape);
  const char* (*get_string)(const LatheValue* value, int64_t index, uint64_t* bytes);
  int32_t (*set_string)(LatheValue* value, int64_t index, const char* text, uint64_t bytes);
  LatheValue* (*make)(int32_t kind, LatheValue* const* elements, int64_t count);
  int64_t (*count)(const LatheValue* value);
  LatheValue* (*get)(const LatheValue* value, int64_t index);
  // Inside a run a tensor of strings holds their numbers: int64, of the type kDLOpaqueHandle with 64 bits. 0 is the
  // empty string, and equal strings have equal numbers. `text` is null for a number that no string of the run has;
  // `number_of` is negative when there is no memory. Texts stay where they are until the run ends. From the calling
  // thread only.
  const char* (*text)(void* call_state, int64_t number, uint64_t* bytes);
  int64_t (*number_of)(void* call_state, const char* text, uint64_t bytes);
} LatheValueTable;

// What a kernel returns after a function of the table has failed, which said why.
#define LATHE_VALUE_FAILED (-1)

// One call. The kernel sets every outputs[i] to a value of its own making (or a retained input); the runtime releases
// them. A value that is an input must not be written to.
typedef struct LatheRuntimeCall {
  const LatheServices* services;
  const LatheValueTable* values;
  void* call_state;
  LatheValue* const* inputs;
  int64_t input_count;
  LatheValue** outputs;  // null on entry
  int64_t output_count;
  const void* attributes;  // the operator's attributes as the kernel's family encodes them; 8-byte aligned
  uint64_t attribute_bytes;
  const char* node;
} LatheRuntimeCall;

// Returns 0, the code it raised, or LATHE_VALUE_FAILED.
typedef int32_t (*LatheRuntimeKernel)(const LatheRuntimeCall* call);

typedef struct LatheRuntimeKernelEntry {
  const char* name;             // "strings.concat"
  LatheRuntimeKernel function;  // null in an artifact's table: whoever opens it supplies the kernel
} LatheRuntimeKernelEntry;

// What an archive of one family exports as lathe_runtime_kernels_<family>, and LatheOpenOptions takes.
typedef struct LatheRuntimeKernelTable {
  uint32_t version;  // LATHE_VALUE_TABLE_VERSION it was built against
  uint32_t size;     // sizeof(LatheRuntimeKernelTable)
  const char* family;
  const LatheRuntimeKernelEntry* entries;
  uint64_t count;
} LatheRuntimeKernelTable;

#ifdef __cplusplus
}
#endif
