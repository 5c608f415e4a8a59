// A device that only records: the backend to copy when writing a new one. It is as lazy as a real device may be:
// copies and releases wait in the queue until `wait`, so code that reads a result too early is found out. Kernels are
// recorded and do nothing.
#include "runtime/null/null_device.h"

#include <cstdlib>
#include <cstring>

#include "abi/lathe.h"
#include "runtime/core/vector.h"

namespace lathe::runtime {
namespace {

struct Operation {
  void* to;  // the memory to release where `from` is null
  const void* from;
  uint64_t bytes;
};

struct NullQueue {
  Queue queue;
  Vector<Operation> pending;
  NullRecord record;
  int32_t status;
};

NullQueue& state_of(const Queue* queue) { return *static_cast<NullQueue*>(queue->state); }

int32_t enqueue(Queue* queue, const Operation& operation) {
  NullQueue& state = state_of(queue);
  if (state.pending.push(operation)) return 0;
  if (state.status == 0) state.status = LATHE_OUT_OF_MEMORY;
  return LATHE_OUT_OF_MEMORY;
}

Queue* create_queue(int32_t device_id) {
  if (device_id != 0) return nullptr;
  auto* made = static_cast<NullQueue*>(std::calloc(1, sizeof(NullQueue)));
  if (made == nullptr) return nullptr;
  made->queue = {&null_device(), made};
  return &made->queue;
}

int32_t wait(Queue* queue) {
  NullQueue& state = state_of(queue);
  for (const Operation& operation : state.pending) {
    if (operation.from == nullptr)
      std::free(operation.to);
    else
      std::memmove(operation.to, operation.from, operation.bytes);
  }
  state.pending.count = 0;
  ++state.record.waits;
  const int32_t status = state.status;
  state.status = 0;
  return status;
}

void destroy_queue(Queue* queue) {
  wait(queue);
  NullQueue& state = state_of(queue);
  state.pending.~Vector();
  std::free(&state);
}

void* allocate(Queue* queue, abi::Scope, uint64_t bytes, uint64_t alignment) {
  void* memory = nullptr;
  if (alignment < sizeof(void*)) alignment = sizeof(void*);
  if (posix_memalign(&memory, alignment, bytes == 0 ? 1 : bytes) != 0) return nullptr;
  ++state_of(queue).record.allocations;
  return memory;
}

void release(Queue* queue, abi::Scope, void* memory) {
  ++state_of(queue).record.releases;
  enqueue(queue, {memory, nullptr, 0});  // without memory to remember it by, it leaks
}

int32_t copy(Queue* queue, void* to, const void* from, uint64_t bytes) {
  ++state_of(queue).record.copies;
  return bytes == 0 ? 0 : enqueue(queue, {to, from, bytes});
}

int32_t launch(Queue* queue, const Launch& launch) {
  NullRecord& record = state_of(queue).record;
  ++record.launches;
  record.last_launch = launch.name;
  return 0;
}

}  // namespace

NullRecord null_record(const Queue* queue) {
  NullRecord record = state_of(queue).record;
  record.pending = state_of(queue).pending.count;
  return record;
}

const Device& null_device() {
  static constexpr Device device = {
      .name = "null",
      .backend = abi::Backend::null,
      .type = kDLExtDev,
      .host_visible = true,
      .executes = false,
      .create_queue = create_queue,
      .destroy_queue = destroy_queue,
      .allocate = allocate,
      .release = release,
      .copy = copy,
      .launch = launch,
      .wait = wait,
  };
  return device;
}

}  // namespace lathe::runtime
