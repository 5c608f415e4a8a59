// What compiled code may ask of whoever runs it: a table of function pointers handed to every kernel. The table only
// grows at its end; `version` rises when the meaning of an entry changes, `size` says how many entries are there.
#pragma once

#include <stdint.h>

#include "dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LATHE_SERVICES_VERSION 1u

// The body of a parallel loop: iterations [begin, end). Must not care how the extent was partitioned.
typedef void (*LatheParallelBody)(void* closure, int64_t begin, int64_t end);

// What a function of the user's is given, and what it gives back.
typedef enum {
  LATHE_PASSED_NOTHING = 0,
  LATHE_PASSED_INTEGER = 1,
  LATHE_PASSED_REAL = 2,
  LATHE_PASSED_TEXT = 3,
  LATHE_PASSED_TENSOR = 4
} LathePassedKind;
typedef struct LathePassed {
  int32_t kind;  // LathePassedKind
  union {
    int64_t integer;
    double real;
    const char* text;
    DLTensor* tensor;  // lent for the call; strides may be null: rows without gaps
  } of;
} LathePassed;

// What every call_state begins with: other than 0 when the call is to end. Code that runs long reads it now and then,
// as a plain load, and leaves by services->stop.
typedef struct LatheCallState {
  volatile uint32_t stop;
} LatheCallState;

typedef struct LatheServices {
  uint32_t version;  // LATHE_SERVICES_VERSION
  uint32_t size;     // sizeof(LatheServices)

  // Calls body over disjoint ranges that together are [0, extent), of at least `grain` iterations each (grain < 1 means
  // 1), on any thread and in any order, and returns when all are done. Inside a body it runs inline. Returns 0, or the
  // code of the first error raised in this call.
  int32_t (*parallel_for)(void* call_state, LatheParallelBody body, void* closure, int64_t extent, int64_t grain);

  // Scratch memory of this call, from any thread. alignment is a power of two. Null when there is no memory; an error
  // is then already raised. What is not released is taken back when the call ends.
  void* (*allocate)(void* call_state, int64_t bytes, int64_t alignment);
  void (*release)(void* call_state, void* memory);

  // Records the first error of the call, from any thread (texts are copied; node may be null), and returns `code`,
  // so that a kernel can end in `return services->raise_error(...)`.
  int32_t (*raise_error)(void* call_state, int32_t code, const char* message, const char* node);

  // The runtime kernel of that name (a LatheRuntimeKernel, see runtime_kernel.h), or null.
  void* (*find_runtime_kernel)(void* call_state, const char* name);

  // Marks a named span inside a kernel for the profiler; may be null in a table whose owner does not profile.
  void (*profile_begin)(void* call_state, const char* name);
  void (*profile_end)(void* call_state);

  // Calls the function that the user registered by that name; `result` says which kind is wanted. Returns 0, or the
  // code of the error that was raised. May be null in a table whose owner has no such functions.
  int32_t (*call_registered)(void* call_state, const char* name, const LathePassed* arguments, int32_t count,
                             LathePassed* result);

  // Records why the call is to end (LatheCallState) and returns the code to leave with.
  int32_t (*stop)(void* call_state);
} LatheServices;

#ifdef __cplusplus
}
#endif
