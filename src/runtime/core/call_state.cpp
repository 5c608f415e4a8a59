#include "runtime/core/call_state.h"

#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/core/error.h"
#include "runtime/core/model.h"
#include "runtime/cpu/thread_pool.h"

namespace lathe::runtime {

struct CallState::Scratch {
  Scratch *previous, *next;
  void* base;  // of the block, which is larger
  uint64_t bytes;
};

namespace {

CallState& state_of(void* call_state) { return *static_cast<CallState*>(call_state); }

struct ScratchLock {
  std::atomic<uint32_t>& word;
  explicit ScratchLock(CallState& state) : word(state.scratch_lock) {
    while (word.exchange(1, std::memory_order_acquire) != 0) sched_yield();
  }
  ~ScratchLock() { word.store(0, std::memory_order_release); }
};

int32_t parallel_for(void* call_state, LatheParallelBody body, void* closure, int64_t extent, int64_t grain) {
  CallState& state = state_of(call_state);
  run_region({body, closure, extent, grain, state.threads, state.float_control});
  return state.error_code.load(std::memory_order_acquire);
}

int32_t raise_error(void* call_state, int32_t code, const char* message, const char* node) {
  CallState& state = state_of(call_state);
  if (code == 0) code = LATHE_KERNEL_FAILED;
  if (state.error_claimed.exchange(1, std::memory_order_acq_rel) == 0) {
    std::snprintf(state.message, sizeof(state.message), "%s", message == nullptr ? "" : message);
    std::snprintf(state.node, sizeof(state.node), "%s", node == nullptr ? "" : node);
    state.error_code.store(code, std::memory_order_release);
  }
  return code;
}

void* allocate(void* call_state, int64_t bytes, int64_t alignment) {
  CallState& state = state_of(call_state);
  // The record lies right before the memory that the kernel gets.
  static_assert(sizeof(CallState::Scratch) <= 64);
  const uint64_t before = alignment < 64 ? 64 : static_cast<uint64_t>(alignment);
  constexpr int64_t most = int64_t{1} << 56;
  const bool is_possible = bytes >= 0 && bytes < most && alignment < most;
  const ScratchBlock block =
      is_possible ? take_scratch(state.account, static_cast<uint64_t>(bytes) + before, before) : ScratchBlock{};
  if (block.memory == nullptr) {
    char message[192];
    if (block.is_past_limit)
      std::snprintf(message, sizeof(message), "scratch memory: %.160s", last_error().message);
    else
      std::snprintf(message, sizeof(message), "there is no memory for %lld bytes of scratch",
                    static_cast<long long>(bytes));
    raise_error(call_state, block.is_past_limit ? LATHE_LIMIT_REACHED : LATHE_OUT_OF_MEMORY, message, nullptr);
    return nullptr;
  }
  char* memory = static_cast<char*>(block.memory) + before;
  auto* record = reinterpret_cast<CallState::Scratch*>(memory) - 1;
  const ScratchLock lock(state);
  *record = {nullptr, state.scratch, block.memory, block.bytes};
  if (state.scratch != nullptr) state.scratch->previous = record;
  state.scratch = record;
  return memory;
}

void release_scratch(void* call_state, void* memory) {
  if (memory == nullptr) return;
  CallState& state = state_of(call_state);
  auto* record = static_cast<CallState::Scratch*>(memory) - 1;
  {
    const ScratchLock lock(state);
    if (record->next != nullptr) record->next->previous = record->previous;
    (record->previous != nullptr ? record->previous->next : state.scratch) = record->next;
  }
  give_scratch(state.account, record->base, record->bytes);
}

void* find_runtime_kernel(void* call_state, const char* name) {
  const LatheModel& model = *state_of(call_state).model;
  for (uint64_t i = 0; i < model.program.runtime_kernels.count; ++i)
    if (std::strcmp(model.program.text(model.program.runtime_kernels[i].name), name) == 0)
      return reinterpret_cast<void*>(model.runtime_kernels[i]);
  return nullptr;
}

void profile_begin(void* call_state, const char* name) {
  Profiler& profiler = *state_of(call_state).profiler;
  if (profiler.is_enabled) profiler.begin_span(name);
}

void profile_end(void* call_state) {
  Profiler& profiler = *state_of(call_state).profiler;
  if (profiler.is_enabled) profiler.end_span();
}

int32_t call_registered(void* call_state, const char* name, const LathePassed* arguments, int32_t count,
                        LathePassed* result) {
  const CallState& state = state_of(call_state);
  char message[256];
  const char* error = message;
  if (state.registered == nullptr)
    std::snprintf(message, sizeof(message), "'%s' is a function of the process that compiled this, and not here", name);
  else if (state.registered(state.owner, name, arguments, count, result, &error) == 0)
    return 0;
  return raise_error(call_state, LATHE_KERNEL_FAILED, error, nullptr);
}

int32_t stop(void* call_state) {
  const CallState& state = state_of(call_state);
  if (state.stopped() == stop_cancelled)
    return raise_error(call_state, LATHE_CANCELLED, "the run was cancelled", nullptr);
  char message[96];
  std::snprintf(message, sizeof(message), "the run passed its time limit of %g s",
                static_cast<double>(state.timeout) / 1e9);
  return raise_error(call_state, LATHE_LIMIT_REACHED, message, nullptr);
}

int64_t deadline_from(int64_t now, uint64_t timeout) {
  return timeout < static_cast<uint64_t>(INT64_MAX - now) ? now + static_cast<int64_t>(timeout) : INT64_MAX;
}

}  // namespace

int32_t CallState::begin_run() {
  error_claimed.store(0, std::memory_order_relaxed);
  error_code.store(0, std::memory_order_relaxed);
  __atomic_store_n(&shared.stop, static_cast<uint32_t>(keep_going), __ATOMIC_RELAXED);
  if (timeout == 0) return 0;
  const auto late = [](void* state) { state_of(state).end(stop_timeout); };
  deadline = {deadline_from(monotonic_nanoseconds(), timeout), late, this, nullptr};
  return arm(deadline) ? 0 : fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no thread to watch over the time limit");
}

void CallState::end(StopReason reason) {
  uint32_t none = keep_going;
  __atomic_compare_exchange_n(&shared.stop, &none, static_cast<uint32_t>(reason), false, __ATOMIC_RELEASE,
                              __ATOMIC_RELAXED);
}

void CallState::end_run() {
  if (timeout != 0) disarm(deadline);
  strings.clear();
  while (scratch != nullptr) {
    Scratch* record = scratch;
    scratch = record->next;
    give_scratch(account, record->base, record->bytes);
  }
  trim_scratch(account);
}

int32_t CallState::report(int32_t status, const char* at_node, const char* kernel) const {
  const int32_t code = error_code.load(std::memory_order_acquire);
  if (code == 0) return fail(LATHE_KERNEL_FAILED, at_node, "kernel '%s' failed with code %d", kernel, status);
  return fail(code, node[0] != 0 ? node : at_node, "%s", message);
}

const LatheServices services = {
    .version = LATHE_SERVICES_VERSION,
    .size = sizeof(LatheServices),
    .parallel_for = parallel_for,
    .allocate = allocate,
    .release = release_scratch,
    .raise_error = raise_error,
    .find_runtime_kernel = find_runtime_kernel,
    .profile_begin = profile_begin,
    .profile_end = profile_end,
    .call_registered = call_registered,
    .stop = stop,
};

}  // namespace lathe::runtime
