// One caller's state for running a model: its arenas, registers, queues and limits.
#pragma once

#include <atomic>

#include "abi/compiled_program.h"
#include "runtime/core/call_state.h"
#include "runtime/core/device.h"
#include "runtime/core/model.h"
#include "runtime/core/profiler.h"
#include "runtime/core/value.h"
#include "runtime/core/vector.h"

namespace lathe::runtime {

using Slot = LatheRegister;

// Where a result of a run goes.
struct OutputTarget {
  const DLTensor* caller;  // null: the runtime allocates
  bool is_direct;          // instructions may write into the caller's memory
};

struct BoundSymbol {
  const char* name;  // points into the program; equal names share a text
  int64_t size;
  const char* input;  // whose size it is
};

}  // namespace lathe::runtime

struct LatheContext {
  LatheModel* model = nullptr;
  lathe::runtime::Account* account = nullptr;
  std::atomic<uint32_t> is_busy = 0;
  uint64_t max_steps = 0;  // 0: none
  uint64_t steps_left = 0;
  uint64_t arena_bytes = 0;

  lathe::runtime::CallState call = {};
  lathe::runtime::Profiler profiler;
  lathe::runtime::Queue* queues[lathe::abi::backend_count] = {};
  lathe::runtime::Vector<void*> arenas;
  lathe::runtime::Vector<lathe::runtime::Block*> dynamic_storages;  // one for each storage, null until reserved
  lathe::runtime::Vector<LatheDynamicStorage> dynamic_memory;       // of these blocks, as compiled code reads it
  lathe::runtime::Vector<lathe::runtime::Slot> slots;               // of all functions
  lathe::runtime::Vector<lathe::runtime::OutputTarget> outputs;
  lathe::runtime::Vector<LatheValue*> results;  // of the main function
  lathe::runtime::Vector<lathe::runtime::BoundSymbol> symbols;
  lathe::runtime::Vector<LatheValue*> states;     // tensors by state; null: as in the beginning
  lathe::runtime::Vector<int64_t> state_scalars;  // the others, by state
  lathe::runtime::Vector<void*> buffers;          // arguments of the kernel being called
  lathe::runtime::Vector<int64_t> scalars;
};

namespace lathe::runtime {

int32_t create_context(LatheModel* model, const LatheContextOptions* options, LatheContext** context);
void destroy_context(LatheContext* context);
int32_t set_limits(LatheContext& context, const LatheContextOptions* options);

// The queue of a device, made when first asked for; null, with the error said, where there is none.
Queue* queue_of(LatheContext& context, abi::Backend backend);

// Gives back the storage's block for another, or for none.
void set_dynamic_storage(LatheContext& context, uint64_t storage, Block* block);

// Inputs of either form: exactly one of the pointers is set.
struct RunInputs {
  const DLTensor* const* tensors;
  LatheValue* const* values;
  int32_t count;
};
// Exactly one of the pointers is set. The runtime allocates for `values` and `managed`.
struct RunOutputs {
  const DLTensor* const* tensors;
  DLManagedTensor** managed;
  LatheValue** values;
  int32_t count;
};
int32_t run(LatheContext& context, const RunInputs& inputs, const RunOutputs& outputs);

}  // namespace lathe::runtime
