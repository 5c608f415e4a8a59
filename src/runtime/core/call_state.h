// What a kernel's call_state is: the state of one run that the services act on, from any of its threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "abi/services.h"
#include "runtime/core/profiler.h"
#include "runtime/core/strings/string_pool.h"
#include "runtime/core/value.h"
#include "runtime/cpu/deadline.h"
#include "runtime/cpu/float_mode.h"

struct LatheModel;

namespace lathe::runtime {

enum StopReason : uint32_t { keep_going, stop_timeout, stop_cancelled };

struct CallState {
  LatheCallState shared;  // with compiled code; its `stop` is a StopReason
  LatheModel* model;
  Account* account;
  Profiler* profiler;
  int32_t threads;
  FloatControl float_control;
  uint64_t timeout;  // nanoseconds of a run; 0: none
  Deadline deadline;
  // Functions that the owner of this run has registered; null: none.
  int32_t (*registered)(void* owner, const char* name, const LathePassed* arguments, int32_t count, LathePassed* result,
                        const char** error);
  void* owner;

  std::atomic<uint32_t> error_claimed;  // 1 from the first raise_error of the run on
  std::atomic<int32_t> error_code;      // set when the texts are there
  char message[1024];
  char node[256];

  struct Scratch;  // a list of what a run has allocated and not released
  Scratch* scratch;
  std::atomic<uint32_t> scratch_lock;

  StringPool strings;  // of the run

  int32_t begin_run();  // 0, or the error said
  void end_run();       // takes back what is left of the scratch memory, and the strings
  StopReason stopped() const { return static_cast<StopReason>(__atomic_load_n(&shared.stop, __ATOMIC_ACQUIRE)); }
  bool is_stopped() const { return stopped() != keep_going; }
  void end(StopReason reason);  // from any thread; the first reason stays
  // What a kernel raised, or `status` itself; said for this thread. `node` and `kernel` help where it gave no texts.
  int32_t report(int32_t status, const char* node, const char* kernel) const;
};

extern const LatheServices services;

}  // namespace lathe::runtime
