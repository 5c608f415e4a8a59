// Crashes of the process while Lathe compiles or runs: they leave a reproducer before the process ends as it would.
#pragma once

#include "driver/report/reproducer.h"
#include "support/function_ref.h"

namespace lathe::driver {

// While one lives, a signal that ends the process (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT) on any thread
// leaves the reproducer of the innermost one, made by a forked child, and says so on standard error; then whoever had
// the signal before gets it. The handlers stay once they are installed, so that a watch costs nothing but two stores.
class CrashWatch {
 public:
  explicit CrashWatch(support::function_ref<Reproducer()> make);
  ~CrashWatch();
  CrashWatch(const CrashWatch&) = delete;
  CrashWatch& operator=(const CrashWatch&) = delete;

 private:
  friend void report_crash(int signal);
  support::function_ref<Reproducer()> make_;
  CrashWatch* outer_;
};

}  // namespace lathe::driver
