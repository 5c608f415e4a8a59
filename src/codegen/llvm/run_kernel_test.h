// For the tests of this room: kernels compiled, loaded and called with a plain services table.
#pragma once

#include <cstdlib>

#include "abi/call_kernel.h"
#include "codegen/llvm/load/jit.h"

namespace lathe::codegen::test {

using Loaded = std::shared_ptr<LoadedKernels>;

inline target::Target native() { return target::native_target(); }

inline Loaded load(const std::vector<Kernel>& kernels, const target::Target& target = native(),
                   const CompileOptions& options = {}) {
  return load_kernels(compile_kernels(kernels, target, options).value_or_throw()).value_or_throw();
}

// What one call saw: errors raised, memory given out.
struct CallState {
  LatheCallState shared = {};
  int threads = 1;
  std::mutex mutex;
  int32_t code = 0;
  std::string message, node;
  std::set<void*> memory;
  int allocations = 0;
  ~CallState() {
    for (void* m : memory) std::free(m);
  }
};

inline int32_t parallel_for(void* state, LatheParallelBody body, void* closure, int64_t extent, int64_t) {
  auto& call = *static_cast<CallState*>(state);
  std::vector<std::thread> threads;
  for (int t = 0; t < call.threads; ++t) {
    const int64_t begin = extent * t / call.threads, end = extent * (t + 1) / call.threads;
    if (call.threads == 1)
      abi::call_body(body, closure, begin, end);
    else
      threads.emplace_back(abi::call_body, body, closure, begin, end);
  }
  for (std::thread& t : threads) t.join();
  return call.code;
}

inline const LatheServices& services() {
  static const LatheServices table = {
      .version = LATHE_SERVICES_VERSION,
      .size = sizeof(LatheServices),
      .parallel_for = &parallel_for,
      .allocate = [](void* state, int64_t bytes, int64_t alignment) -> void* {
        auto& call = *static_cast<CallState*>(state);
        const std::lock_guard lock(call.mutex);
        void* m = std::aligned_alloc(static_cast<size_t>(alignment),
                                     static_cast<size_t>((bytes + alignment) / alignment * alignment));
        call.memory.insert(m);
        ++call.allocations;
        return m;
      },
      .release =
          [](void* state, void* memory) {
            auto& call = *static_cast<CallState*>(state);
            const std::lock_guard lock(call.mutex);
            call.memory.erase(memory);
            std::free(memory);
          },
      .raise_error = [](void* state, int32_t code, const char* message, const char* node) -> int32_t {
        auto& call = *static_cast<CallState*>(state);
        const std::lock_guard lock(call.mutex);
        if (call.code == 0) call.code = code, call.message = message, call.node = node ? node : "";
        return code;
      },
      .find_runtime_kernel = [](void*, const char*) -> void* { return nullptr; },
      .profile_begin = nullptr,
      .profile_end = nullptr,
      .call_registered = nullptr,
      .stop = [](void* state) -> int32_t { return services().raise_error(state, 99, "stopped", nullptr); },
  };
  return table;
}

inline int32_t call(const Loaded& loaded, size_t kernel, const std::vector<void*>& buffers,
                    const std::vector<int64_t>& scalars = {}, CallState* state = nullptr) {
  CallState own;
  return abi::call_kernel(loaded->functions().at(kernel), &services(), state ? state : &own, buffers.data(),
                          scalars.data());
}

}  // namespace lathe::codegen::test
