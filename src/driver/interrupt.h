// Ctrl-C inside a run: for callers that handle SIGINT themselves, as Python does, and would see it only afterwards.
#pragma once

#include <csignal>

#include "abi/lathe.h"
#include "runtime/cpu/deadline.h"

namespace lathe::driver {

// While it lives, SIGINT cancels the run in progress on a context, and then goes to whoever had it. The signal is taken
// over only when the run has lasted some milliseconds, by the thread that watches over deadlines: short runs pay no
// system call. Does nothing where nobody handles the signal, or on another thread than the process's first, which is
// the one that signals are for.
class CancelOnInterrupt {
 public:
  explicit CancelOnInterrupt(LatheContext* context);
  ~CancelOnInterrupt();
  CancelOnInterrupt(const CancelOnInterrupt&) = delete;
  CancelOnInterrupt& operator=(const CancelOnInterrupt&) = delete;

 private:
  friend void cancel_runs(int, siginfo_t*, void*);
  LatheContext* context_;
  CancelOnInterrupt* outer_ = nullptr;  // a run may call back to what runs another
  runtime::Deadline lasts_{};
  bool is_active_ = false;
};

}  // namespace lathe::driver
