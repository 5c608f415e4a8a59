#include "driver/report/crash.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace lathe::driver {

void report_crash(int signal);

namespace {

constexpr int watched_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
constexpr unsigned seconds_for_reproducer = 60;
constexpr size_t handler_stack_bytes = size_t{1} << 16, reproducer_stack_bytes = size_t{8} << 20;

// A thread's own come first: a crash there is of what it runs. Elsewhere it is of a worker, and the newest is meant.
thread_local CrashWatch* innermost_here = nullptr;
std::atomic<CrashWatch*> newest;
struct sigaction handlers_before[NSIG];

// Where the stack itself is used up, the handler needs another. A stack that the thread has already is kept.
void give_stack() {
  stack_t now{};
  if (::sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
  void* memory = ::mmap(nullptr, handler_stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  const stack_t ours{.ss_sp = memory, .ss_flags = 0, .ss_size = handler_stack_bytes};
  ::sigaltstack(&ours, nullptr);
}

// Calls `work` on a stack of its own: the handler's may be of few pages (Python's faulthandler, a sanitizer).
void on_large_stack(void* (*work)(void*)) {
  pthread_attr_t attributes;
  pthread_t thread;
  const bool is_begun = ::pthread_attr_init(&attributes) == 0 &&
                        ::pthread_attr_setstacksize(&attributes, reproducer_stack_bytes) == 0 &&
                        ::pthread_create(&thread, &attributes, work, nullptr) == 0;
  if (is_begun)
    ::pthread_join(thread, nullptr);
  else
    work(nullptr);
}

void handle_crash(int signal, siginfo_t* info, void*);

void install() {
  struct sigaction ours{};
  ours.sa_sigaction = handle_crash;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  for (const int signal : watched_signals) ::sigaction(signal, &ours, &handlers_before[signal]);
  give_stack();
}

const char* name_of(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    case SIGTRAP:
      return "SIGTRAP";
    default:
      return "SIGABRT";
  }
}

void handle_crash(int signal, siginfo_t* info, void*) {
  // A second crash, here or on another thread, ends the process at once.
  for (const int each : watched_signals) ::sigaction(each, &handlers_before[each], nullptr);
  report_crash(signal);
  // What the processor raised comes again when the instruction does; what was sent does not. (LLVM's own handlers,
  // where those had the signal, drop what was sent.)
  if (info->si_code <= 0) ::raise(signal);
}

// What the child leaves a reproducer of.
struct {
  const support::function_ref<Reproducer()>* make;
  int signal;
} crash;

// Ends the process.
void* leave_reproducer_of_crash(void*) {
  Reproducer reproducer = (*crash.make)();
  reproducer.what = std::string("the process got ") + name_of(crash.signal);
  const std::string said = leave_reproducer(reproducer);
  for (size_t at = 0; at < said.size();) {
    const ssize_t count = ::write(STDERR_FILENO, said.data() + at, said.size() - at);
    if (count <= 0) break;
    at += static_cast<size_t>(count);
  }
  ::_exit(0);  // whole, rather than the thread: LLVM has given that a stack for signals which is not its own to free
}

}  // namespace

// The work is a child's, which may allocate and open files: the C library keeps its locks in order across a fork, and
// an alarm ends the child where somebody else's lock does not.
void report_crash(int signal) {
  const CrashWatch* watch = innermost_here ? innermost_here : newest.load();
  if (!watch) return;
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGALRM, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::alarm(seconds_for_reproducer);
    crash = {&watch->make_, signal};
    on_large_stack(leave_reproducer_of_crash);
  }
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
}

CrashWatch::CrashWatch(support::function_ref<Reproducer()> make) : make_(make), outer_(innermost_here) {
  static std::once_flag installed;
  std::call_once(installed, install);
  innermost_here = this;
  newest = this;
}

CrashWatch::~CrashWatch() {
  innermost_here = outer_;
  CrashWatch* self = this;
  newest.compare_exchange_strong(self, outer_);
}

}  // namespace lathe::driver
