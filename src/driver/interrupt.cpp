#include "driver/interrupt.h"

#include <unistd.h>

#include "runtime/core/profiler.h"
#include "support/std.h"

namespace lathe::driver {

namespace {

constexpr int64_t short_run = 20'000'000;  // nanoseconds; a signal within them is seen right after the run

std::atomic<CancelOnInterrupt*> innermost;
struct sigaction before;  // what had the signal, while it is taken over
std::atomic<bool> is_taken_over;

bool is_first_thread() {
  static thread_local const bool is_first = ::getpid() == ::gettid();
  return is_first;
}

bool is_handled(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

}  // namespace

void cancel_runs(int signal, siginfo_t* info, void* where) {
  for (CancelOnInterrupt* each = innermost; each; each = each->outer_) lathe_cancel(each->context_);
  if ((before.sa_flags & SA_SIGINFO) != 0)
    before.sa_sigaction(signal, info, where);
  else
    before.sa_handler(signal);
}

namespace {

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == cancel_runs;
}

void take_over(void*) {
  if (is_taken_over) return;
  struct sigaction ours{};
  ours.sa_sigaction = cancel_runs;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  struct sigaction had{};
  if (::sigaction(SIGINT, nullptr, &had) != 0 || !is_handled(had) || is_ours(had)) return;
  before = had;
  is_taken_over = ::sigaction(SIGINT, &ours, nullptr) == 0;
}

void give_back() {
  if (!is_taken_over.exchange(false)) return;
  struct sigaction now{};
  ::sigaction(SIGINT, &before, &now);
  if (!is_ours(now)) ::sigaction(SIGINT, &now, nullptr);  // a function called by the run has changed it for good
}

}  // namespace

CancelOnInterrupt::CancelOnInterrupt(LatheContext* context) : context_(context) {
  if (!is_first_thread()) return;
  lasts_ = {runtime::monotonic_nanoseconds() + short_run, take_over, nullptr, nullptr};
  outer_ = innermost;
  innermost = this;
  is_active_ = runtime::arm(lasts_);
  if (!is_active_) innermost = outer_;
}

CancelOnInterrupt::~CancelOnInterrupt() {
  if (!is_active_) return;
  runtime::disarm(lasts_);
  innermost = outer_;
  if (!outer_) give_back();
}

}  // namespace lathe::driver
