// The CPU as a device: its queue is immediate, so every operation is done when it returns.
#include <cstdlib>
#include <cstring>

#include "abi/call_kernel.h"
#include "runtime/core/device.h"
#include "runtime/cpu/large_memory.h"

namespace lathe::runtime {
namespace {

struct CpuQueue {
  Queue queue;
  int32_t status;
};

Queue* create_queue(int32_t device_id) {
  if (device_id != 0) return nullptr;
  auto* made = static_cast<CpuQueue*>(std::calloc(1, sizeof(CpuQueue)));
  if (made == nullptr) return nullptr;
  made->queue = {&cpu_device(), made};
  return &made->queue;
}

void destroy_queue(Queue* queue) { std::free(queue->state); }

void* allocate(Queue*, abi::Scope, uint64_t bytes, uint64_t alignment) {
  return allocate_large(bytes, alignment < 64 ? 64 : alignment);
}

void release(Queue*, abi::Scope, void* memory) { std::free(memory); }

int32_t copy(Queue*, void* to, const void* from, uint64_t bytes) {
  if (bytes > 0) std::memmove(to, from, bytes);
  return 0;
}

int32_t launch(Queue* queue, const Launch& launch) {
  const int32_t status =
      abi::call_kernel(launch.kernel, launch.services, launch.call_state, launch.buffers, launch.scalars);
  auto* state = static_cast<CpuQueue*>(queue->state);
  if (state->status == 0) state->status = status;
  return status;
}

int32_t wait(Queue* queue) {
  auto* state = static_cast<CpuQueue*>(queue->state);
  const int32_t status = state->status;
  state->status = 0;
  return status;
}

}  // namespace

const Device& cpu_device() {
  static constexpr Device device = {
      .name = "cpu",
      .backend = abi::Backend::cpu,
      .type = kDLCPU,
      .host_visible = true,
      .executes = true,
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
