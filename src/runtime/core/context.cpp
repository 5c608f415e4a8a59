#include "runtime/core/context.h"

#include <cstdlib>
#include <new>

#include "runtime/core/error.h"
#include "runtime/cpu/thread_count.h"

namespace lathe::runtime {
namespace {

// The tensor that needs most of an arena: its node is what the memory is for.
const char* node_of_largest(const abi::ProgramView& program, uint64_t arena) {
  const abi::InstructionRecord* found = nullptr;
  uint64_t most = 0;
  for (const abi::InstructionRecord& at : program.instructions) {
    if (at.opcode != abi::Opcode::alloc_tensor || program.operands[at.first_operand + 1] == abi::absent) continue;
    const abi::StorageRecord& storage = program.storages[program.operands[at.first_operand + 1]];
    if (storage.kind != abi::StorageKind::planned || storage.index != arena || storage.bytes <= most) continue;
    most = storage.bytes;
    found = &at;
  }
  return found == nullptr ? "" : program.text(found->node);
}

template <typename Field>
Field option(const LatheContextOptions* options, Field LatheContextOptions::* field) {
  if (options == nullptr) return {};
  const auto end = reinterpret_cast<const char*>(&(options->*field) + 1) - reinterpret_cast<const char*>(options);
  return options->size >= static_cast<uint64_t>(end) ? options->*field : Field{};
}

int32_t allocate_arenas(LatheContext& context) {
  const abi::ProgramView& program = context.model->program;
  if (!context.arenas.resize(program.arenas.count))
    return fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for a context");
  for (uint64_t i = 0; i < program.arenas.count; ++i) {
    const abi::ArenaRecord& arena = program.arenas[i];
    Queue* queue = queue_of(context, arena.device);
    if (queue == nullptr) return last_error().code;
    if (!charge(context.account, arena.bytes)) return at_node(node_of_largest(program, i));
    context.arena_bytes += arena.bytes;
    context.arenas[i] = queue->device->allocate(queue, arena.scope, arena.bytes, arena.alignment);
    if (context.arenas[i] == nullptr)
      return fail(LATHE_OUT_OF_MEMORY, node_of_largest(program, i),
                  "there is no memory for an arena of %llu bytes on %s", static_cast<unsigned long long>(arena.bytes),
                  queue->device->name);
  }
  return 0;
}

void take_limits(LatheContext& context, const LatheContextOptions* options) {
  context.account->limit = option(options, &LatheContextOptions::max_memory);
  context.max_steps = option(options, &LatheContextOptions::max_steps);
  context.call.timeout = option(options, &LatheContextOptions::timeout);
}

int32_t fill(LatheContext& context, const LatheContextOptions* options) {
  const abi::ProgramView& program = context.model->program;
  context.account = make_account();
  if (context.account == nullptr) return fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for a context");
  take_limits(context, options);
  context.call.model = context.model;
  context.call.account = context.account;
  context.call.profiler = &context.profiler;
  context.call.threads = choose_thread_count(option(options, &LatheContextOptions::threads));
  context.call.float_control = float_control(option(options, &LatheContextOptions::flush_denormals) != 0);
  uint64_t buffers = 0, scalars = 0;
  for (const abi::KernelRecord& kernel : program.kernels) {
    if (kernel.buffer_count > buffers) buffers = kernel.buffer_count;
    if (kernel.scalar_count > scalars) scalars = kernel.scalar_count;
  }
  // Kernels that nothing calls may state any counts; a call has as many operands as it states.
  if (buffers > program.operands.count) buffers = program.operands.count;
  if (scalars > program.operands.count) scalars = program.operands.count;
  if (!context.dynamic_storages.resize(program.storages.count) ||
      !context.dynamic_memory.resize(program.storages.count) || !context.slots.resize(program.registers.count) ||
      !context.states.resize(program.states.count) || !context.state_scalars.resize(program.states.count) ||
      !context.outputs.resize(program.outputs.count) || !context.results.reserve(program.outputs.count) ||
      !context.buffers.resize(buffers + 1) || !context.scalars.resize(scalars + 1))
    return fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for a context");
  return allocate_arenas(context);
}

}  // namespace

Queue* queue_of(LatheContext& context, abi::Backend backend) {
  Queue*& queue = context.queues[static_cast<uint32_t>(backend)];
  if (queue != nullptr) [[likely]]
    return queue;
  queue = device_of(backend).create_queue(0);
  if (queue == nullptr && backend == abi::Backend::cpu)
    fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for a queue on the CPU");
  else if (queue == nullptr)
    fail(LATHE_WRONG_TARGET, nullptr, "there is no device '%s' here", device_of(backend).name);
  return queue;
}

void set_dynamic_storage(LatheContext& context, uint64_t storage, Block* block) {
  release(context.dynamic_storages[storage]);
  context.dynamic_storages[storage] = block;
  context.dynamic_memory[storage] = {};
  if (block != nullptr) context.dynamic_memory[storage] = {block->memory, block->bytes};
}

int32_t create_context(LatheModel* model, const LatheContextOptions* options, LatheContext** context) {
  void* memory = std::malloc(sizeof(LatheContext));
  if (memory == nullptr) return fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for a context");
  auto* made = new (memory) LatheContext;
  model->references.fetch_add(1, std::memory_order_relaxed);
  made->model = model;
  const int32_t status = fill(*made, options);
  if (status == 0)
    *context = made;
  else
    destroy_context(made);
  return status;
}

int32_t set_limits(LatheContext& context, const LatheContextOptions* options) {
  if (context.is_busy.exchange(1, std::memory_order_acquire) != 0)
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "the limits of a context cannot change during a run");
  take_limits(context, options);
  context.is_busy.store(0, std::memory_order_release);
  return 0;
}

void destroy_context(LatheContext* context) {
  if (context == nullptr) return;
  for (Slot& slot : context->slots) release(slot.object);
  for (Block* block : context->dynamic_storages) release(block);
  for (LatheValue* state : context->states) release(state);
  for (uint64_t i = 0; i < context->arenas.count; ++i) {
    const abi::ArenaRecord& arena = context->model->program.arenas[i];
    Queue* queue = context->queues[static_cast<uint32_t>(arena.device)];
    if (context->arenas[i] != nullptr) queue->device->release(queue, arena.scope, context->arenas[i]);
  }
  for (Queue* queue : context->queues)
    if (queue != nullptr) queue->device->destroy_queue(queue);
  release(context->account);
  release(context->model);
  context->~LatheContext();
  std::free(context);
}

}  // namespace lathe::runtime
