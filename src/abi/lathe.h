// The C interface of a compiled model: open, describe, create a context, run, close.
//
//   LatheModel* model;      lathe_open("model.so", NULL, &model);
//   LatheContext* context;  lathe_create_context(model, NULL, &context);
//   DLManagedTensor* y = NULL;
//   const DLTensor* inputs[] = {&x};
//   if (lathe_run(context, inputs, 1, &y, 1) != LATHE_OK) puts(lathe_last_error()->message);
//
// A model may be used from any thread. A context belongs to one caller at a time; contexts of one model share its
// weights and run beside each other. Functions that return int32_t return a LatheStatus; the text of the last failure
// on the calling thread is in lathe_last_error(). No exception leaves this interface.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LATHE_INTERFACE_VERSION 1u

#if defined(__GNUC__)
#define LATHE_EXPORT __attribute__((visibility("default")))
#else
#define LATHE_EXPORT
#endif

typedef enum LatheStatus {
  LATHE_OK = 0,
  LATHE_INVALID_ARGUMENT = 1,  // a wrong count, dtype, rank, shape, device or null pointer from the caller
  LATHE_INVALID_ARTIFACT = 2,  // not an artifact, damaged, or of another version
  LATHE_WRONG_TARGET = 3,      // compiled for another architecture or for CPU features this machine lacks
  LATHE_OUT_OF_MEMORY = 4,
  LATHE_CHECK_FAILED = 5,  // a check of the model failed on these inputs
  LATHE_KERNEL_FAILED = 6,
  LATHE_MISSING_KERNEL = 7,  // a runtime kernel the artifact needs is not there
  LATHE_IO_ERROR = 8,
  LATHE_LIMIT_REACHED = 9,  // the context's limit of memory, steps or time
  LATHE_CANCELLED = 10      // by lathe_cancel
} LatheStatus;

typedef struct LatheModel LatheModel;
typedef struct LatheContext LatheContext;
typedef struct LatheQueue LatheQueue;
typedef struct LatheValue LatheValue;
struct LatheArtifact;            // artifact.h
struct LatheRuntimeKernelTable;  // runtime_kernel.h

// ---- errors ----

typedef struct LatheError {
  int32_t code;         // LatheStatus, or what a kernel raised
  const char* message;  // one sentence; "" when there was no error
  const char* node;     // the model's node it belongs to, or ""
} LatheError;

// The last failure on this thread. Valid until the next call on this thread that fails.
LATHE_EXPORT const LatheError* lathe_last_error(void);
// LATHE_INTERFACE_VERSION of the library that is loaded.
LATHE_EXPORT uint32_t lathe_interface_version(void);

// ---- models ----

// Options are read as far as `size` says, so that a program built against an older header keeps working.
typedef struct LatheOpenOptions {
  uint64_t size;             // sizeof(LatheOpenOptions)
  const char* symbol;        // the exported artifact's name; null means "lathe_artifact_v1"
  const char* weights_path;  // where an artifact with external weights finds them; null means beside the artifact
  const struct LatheRuntimeKernelTable* const* runtime_kernels;  // kernels beside those the artifact carries
  uint64_t runtime_kernel_tables;
  // 1: the weights are copied into huge pages, memory of this process alone; 0: they stay in the file, which processes
  // share and which is read as it is needed.
  uint64_t huge_pages;
} LatheOpenOptions;

LATHE_EXPORT int32_t lathe_open(const char* path, const LatheOpenOptions* options, LatheModel** model);
// A shared library that lies in memory (copied; the bytes may be freed afterwards).
LATHE_EXPORT int32_t lathe_open_memory(const void* bytes, uint64_t size, const LatheOpenOptions* options,
                                       LatheModel** model);
// An artifact in this process: linked in, or made by the JIT. It must outlive the model and its contexts.
LATHE_EXPORT int32_t lathe_open_artifact(const struct LatheArtifact* artifact, const LatheOpenOptions* options,
                                         LatheModel** model);
// Contexts keep what they need of the model; it goes when the last of them is destroyed.
LATHE_EXPORT void lathe_close(LatheModel* model);

typedef enum LatheValueKind {
  LATHE_EMPTY = 0,
  LATHE_TENSOR = 1,
  LATHE_SCALAR = 2,  // a shape scalar: int64
  LATHE_TUPLE = 3,
  LATHE_STRINGS = 4,  // a tensor of strings
  LATHE_SEQUENCE = 5,
  LATHE_OPTIONAL = 6
} LatheValueKind;

// One input or output of a model. Owned by the model.
typedef struct LatheValueInfo {
  const char* name;
  int32_t kind;                // LatheValueKind
  DLDataType dtype;            // of a tensor
  int32_t rank;                // -1 when it is not known
  const int64_t* dims;         // rank of them; -1 where the size is not fixed
  const char* const* symbols;  // rank of them; the name of a symbolic dim, or "" (equal names are equal sizes)
} LatheValueInfo;

LATHE_EXPORT int32_t lathe_input_count(const LatheModel* model);
LATHE_EXPORT int32_t lathe_output_count(const LatheModel* model);
LATHE_EXPORT const LatheValueInfo* lathe_input(const LatheModel* model, int32_t index);
LATHE_EXPORT const LatheValueInfo* lathe_output(const LatheModel* model, int32_t index);
// Inputs that a context keeps from one run to the next (a cache of keys and values, a recurrent cell's memory). They
// are no inputs of a call; the name, dtype and dims are those of the model's input.
LATHE_EXPORT int32_t lathe_state_count(const LatheModel* model);
LATHE_EXPORT const LatheValueInfo* lathe_state(const LatheModel* model, int32_t index);
// What the compiler wrote down: "target", "builder", "version", "content_hash", ... Null for an unknown key.
LATHE_EXPORT const char* lathe_metadata(const LatheModel* model, const char* key);
LATHE_EXPORT int32_t lathe_metadata_count(const LatheModel* model);
LATHE_EXPORT const char* lathe_metadata_key(const LatheModel* model, int32_t index);
// The register program, for printing.
LATHE_EXPORT const void* lathe_program(const LatheModel* model, uint64_t* bytes);

// ---- contexts ----

// Read as far as `size` says, as LatheOpenOptions. A limit of 0 is none. A run that passes a limit ends with
// LATHE_LIMIT_REACHED and the node it was at; the context can run again.
typedef struct LatheContextOptions {
  uint64_t size;            // sizeof(LatheContextOptions)
  int32_t threads;          // 0: LATHE_NUM_THREADS, OMP_NUM_THREADS, else what this process may use
  int32_t flush_denormals;  // 1: denormals count as zero during a run; 0: IEEE
  uint64_t max_memory;      // bytes held at once: scratch, values, and results that were not freed yet; what is kept
                            // of these for the next run counts, and goes before the limit refuses
  uint64_t max_steps;       // instructions of the register program in one run
  uint64_t timeout;         // nanoseconds of one run; kernels ask too, every few milliseconds
} LatheContextOptions;

LATHE_EXPORT int32_t lathe_create_context(LatheModel* model, const LatheContextOptions* options,
                                          LatheContext** context);
LATHE_EXPORT void lathe_destroy_context(LatheContext* context);
// Other limits for the runs that follow; everything else in the options stays as it is. Not during a run.
LATHE_EXPORT int32_t lathe_set_limits(LatheContext* context, const LatheContextOptions* limits);
// Ends the run in progress, if there is one, with LATHE_CANCELLED: within milliseconds, where its kernels were compiled
// to ask. From any thread or signal handler, as long as the context lives.
LATHE_EXPORT void lathe_cancel(LatheContext* context);
// Bytes of planned scratch memory (the arenas) and the most that was held beside them.
LATHE_EXPORT uint64_t lathe_arena_bytes(const LatheContext* context);
LATHE_EXPORT uint64_t lathe_peak_heap_bytes(const LatheContext* context);
LATHE_EXPORT int32_t lathe_thread_count(const LatheContext* context);

// ---- running ----

// Inputs in the order of lathe_input; any strides. Each outputs[i] receives a tensor that the caller frees through its
// deleter. On failure no output is set.
LATHE_EXPORT int32_t lathe_run(LatheContext* context, const DLTensor* const* inputs, int32_t input_count,
                               DLManagedTensor** outputs, int32_t output_count);
// Writes into the caller's tensors, whose dtype and shape must be those of the results.
LATHE_EXPORT int32_t lathe_run_into(LatheContext* context, const DLTensor* const* inputs, int32_t input_count,
                                    const DLTensor* const* outputs, int32_t output_count);
// Inputs and outputs of any kind. The caller releases each output.
LATHE_EXPORT int32_t lathe_run_values(LatheContext* context, LatheValue* const* inputs, int32_t input_count,
                                      LatheValue** outputs, int32_t output_count);

// A queue orders work on a device. On a CPU it is immediate: the work is done when the call returns. Inputs and outputs
// stay untouched by the caller until lathe_wait returns, which also gives the first failure since the last wait.
LATHE_EXPORT int32_t lathe_create_queue(LatheContext* context, LatheQueue** queue);
LATHE_EXPORT int32_t lathe_run_async(LatheContext* context, LatheQueue* queue, const DLTensor* const* inputs,
                                     int32_t input_count, const DLTensor* const* outputs, int32_t output_count);
LATHE_EXPORT int32_t lathe_wait(LatheQueue* queue);
LATHE_EXPORT void lathe_destroy_queue(LatheQueue* queue);

// ---- states ----

// A run begins with the states that the last one left; one that fails leaves them as they were. A new context's are
// empty: zeros, with no elements along axes whose size is not fixed, unless inputs of the run decide that.
LATHE_EXPORT int32_t lathe_reset_states(LatheContext* context);
// Copies of all states, in the order of lathe_state; the caller frees each through its deleter.
LATHE_EXPORT int32_t lathe_get_states(LatheContext* context, DLManagedTensor** states, int32_t state_count);
// Copies of the caller's tensors, of any strides, become the states: all of them, or none where one does not fit.
LATHE_EXPORT int32_t lathe_set_states(LatheContext* context, const DLTensor* const* states, int32_t state_count);

// ---- values of any kind (reference-counted; a function that makes one returns null on failure) ----

LATHE_EXPORT int32_t lathe_value_kind(const LatheValue* value);
LATHE_EXPORT LatheValue* lathe_value_retain(LatheValue* value);
LATHE_EXPORT void lathe_value_release(LatheValue* value);

// Copies the tensor. The other form leaves the contents unset, to be written through lathe_value_tensor.
LATHE_EXPORT LatheValue* lathe_value_from_tensor(const DLTensor* tensor);
LATHE_EXPORT LatheValue* lathe_value_make_tensor(DLDataType dtype, int32_t rank, const int64_t* shape);
// Null when the value is not a tensor. Valid as long as the value.
LATHE_EXPORT const DLTensor* lathe_value_tensor(const LatheValue* value);

LATHE_EXPORT LatheValue* lathe_value_make_scalar(int64_t scalar);
LATHE_EXPORT int64_t lathe_value_scalar(const LatheValue* value);

// Strings are bytes with a length. A new tensor of strings holds empty ones.
LATHE_EXPORT LatheValue* lathe_value_make_strings(int32_t rank, const int64_t* shape);
LATHE_EXPORT int32_t lathe_value_strings_shape(const LatheValue* value, int32_t* rank, const int64_t** shape);
LATHE_EXPORT const char* lathe_value_get_string(const LatheValue* value, int64_t index, uint64_t* bytes);
LATHE_EXPORT int32_t lathe_value_set_string(LatheValue* value, int64_t index, const char* text, uint64_t bytes);

// Tuples, sequences and optionals hold elements (an optional none or one). make retains the elements; get retains its
// result; insert returns a new sequence and leaves the old one as it was.
LATHE_EXPORT LatheValue* lathe_value_make(int32_t kind, LatheValue* const* elements, int64_t count);
LATHE_EXPORT int64_t lathe_value_count(const LatheValue* value);
LATHE_EXPORT LatheValue* lathe_value_get(const LatheValue* value, int64_t index);

// ---- profiling ----

typedef struct LatheProfileEntry {
  const char* name;  // the kernel's or instruction's name
  const char* node;  // the model's node it belongs to, or ""
  uint64_t calls;
  uint64_t nanoseconds;
} LatheProfileEntry;

// Off by default. Entries appear in program order; an entry is valid until the next run on the context.
LATHE_EXPORT void lathe_profile(LatheContext* context, int32_t enabled);
LATHE_EXPORT void lathe_profile_reset(LatheContext* context);
LATHE_EXPORT int32_t lathe_profile_count(const LatheContext* context);
LATHE_EXPORT int32_t lathe_profile_entry(const LatheContext* context, int32_t index, LatheProfileEntry* entry);

#ifdef __cplusplus
}
#endif
